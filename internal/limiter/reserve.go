package limiter

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
)

// Reservation is the admission of a request before it is known whether it gets a token, and for
// which user.
type Reservation struct {
	Admission
	request  Request
	unproven bool    // the counts do not include it yet
	held     []level // the keys that it is held for
	crowded  bool
	late     bool // its token was issued, but there was no room left
	// ahead are how many held requests come before it: of its own key, its source and the total.
	ahead [3]int64
	early bool // so many come before it that its keys must be read first
}

// Crowded reports whether the request must be answered with 429 because others with the same
// unproven credentials could take all of the room. There is then no decision, and nothing to
// settle.
func (v *Reservation) Crowded() bool { return v.crowded }

// Reserve is [Limiter.Admit] for a request with a client and user that are proven later, by the
// response of another server. If the request is not rejected, it counts until the caller calls one
// of [Limiter.Settle], [Limiter.Cancel] and [Limiter.Refuse], once. With unproven [Credentials] it counts
// for these credentials alone. Observers and candidates see it only after Settle, so requests
// without valid credentials do not appear in any statistics.
func (l *Limiter) Reserve(ctx context.Context, r Request) Reservation {
	r.Unproven = true
	now, v := l.Clock(), Reservation{request: r}
	l.reserve(ctx, now, &v)
	if v.Rejected() {
		l.conclude(ctx, now, &v, v.Decision)
	}
	return v
}

// reserve is Reserve for a request that arrived at came.
func (l *Limiter) reserve(ctx context.Context, came time.Time, v *Reservation) {
	r, read := &v.request, false
	for now := came; ; now = l.Clock() {
		e := r.under(l.Policies())
		if d, banned := l.banned(now, r, e); banned {
			v.Decision = d
			return
		}
		if !l.hold(now, v, e, read) {
			leased := v.Leased
			v.Admission = l.queues.Take(ctx, r.Key, func() *ratelimit.Effective { return r.under(l.Policies()) })
			v.Leased += leased
			l.bannedMeanwhile(r, &v.Admission)
			return
		}
		if v.early {
			v.Leased, read = l.Counters.AwaitRead(ctx, now, r.Key, e, v.ahead), true
			came = l.Clock()
			continue
		}
		v.Waited = now.Sub(came)
		if v.unproven || !l.unproven.pause(ctx, v, e) {
			return
		}
	}
}

// Cancel ends the reservation of a request that got nothing. It does not count.
func (l *Limiter) Cancel(v *Reservation) {
	if v.unproven || v.late {
		l.unproven.release(v)
		return
	}
	l.GiveBack(v.request.Key, &v.Admission)
}

// Settle ends the reservation of a request that got a token. username is the user of the token, or
// empty if the user is unknown. The request then counts against this user, even if it was reserved
// for another. Settle returns the decision for the RateLimit fields. late is set if the user had no
// room left, which shows only now. The token cannot be taken back, so the request then counts for
// the total of the client and not for the user.
func (l *Limiter) Settle(ctx context.Context, v *Reservation, username string) (d ratelimit.Decision, late bool) {
	l.Prove(ctx, v)
	now, d := l.Clock(), v.Decision
	proven := v.request
	proven.Unproven, proven.Unknown = false, proven.Unknown && username == ""
	if username != "" {
		proven.Key.Username = username
	}
	if v.late {
		late = true // counts under shared limits, as far as they have room
		l.Counters.Take(now, proven.Key, proven.under(l.Policies()).Only(false, true, true), 1)
	} else if proven.Key != v.request.Key && v.counted() {
		d, late = l.settleOn(ctx, now, v, &proven)
	}
	v.request = proven
	l.conclude(ctx, now, v, d)
	return d, late
}

// counted reports whether the counts include the reservation, or will when it leaves its queue.
func (v *Reservation) counted() bool {
	return v.Outcome == ratelimit.Allowed || v.Outcome == ratelimit.Delayed || v.Outcome == ratelimit.WouldDelay
}

// settleOn moves the count of a reservation to the proven user. The counts of the total and of the
// source stay: if they were refunded and taken again, another request could take the room in
// between. Under a strict limit settleOn may wait for permits, like Reserve. It waits even if the
// client has disconnected, because the token is issued.
func (l *Limiter) settleOn(ctx context.Context, now time.Time, v *Reservation, proven *Request) (d ratelimit.Decision, late bool) {
	whole := proven.under(l.Policies())
	if v.Outcome == ratelimit.WouldDelay { // nothing is reserved yet
		l.Cancel(v)
		d = l.Counters.Take(now, proven.Key, whole, 1)
	} else {
		own, _ := l.Counters.Await(context.WithoutCancel(ctx), now, proven.Key, whole.Own(), 1)
		d = own.WithShared(&v.Decision)
		if !v.request.Unknown {
			reserved := v.Own()
			l.GiveBack(v.request.Key, &reserved)
		}
	}
	late = d.Rejected() || d.Outcome == ratelimit.WouldDeny
	if late || d.Outcome == ratelimit.Allowed { // it has passed as reserved
		d.Outcome, d.RetryAfter = v.Outcome, 0
	}
	return d, late
}

// conclude passes the decision on a reservation to the observer. The reservation does not count
// towards a ban, neither in force nor of a candidate, because its client was not proven when it was
// decided.
func (l *Limiter) conclude(ctx context.Context, now time.Time, v *Reservation, d ratelimit.Decision) {
	decided := v.request
	decided.Unproven = true
	l.observe(ctx, now, &v.request, &Decided{
		Decision: d, Waited: v.Waited, Leased: v.Leased, Tried: l.tryCandidate(ctx, now, l.Policies(), &decided),
	})
}
