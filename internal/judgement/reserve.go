package judgement

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/turns"
)

// Reservation is the admission of a request before it is known whether it gets a token, and for
// which user.
type Reservation struct {
	turns.Turn
	request  Request
	unproven bool    // the counts do not include it yet
	held     []level // the keys that it is held for
	crowded  bool
	late     bool // its token was issued, but there was no room left
}

// Crowded reports whether the request must be answered with 429 because others with the same
// unproven credentials could take all of the room. There is then no decision, and nothing to
// settle.
func (v *Reservation) Crowded() bool { return v.crowded }

// Reserve is [Judge.Admit] for a request with a client and user that are proven later, by the
// response of another server. If the request is not rejected, it counts until the caller calls one
// of [Judge.Settle], [Judge.Cancel] and [Judge.Refuse], once. With unproven [Credentials] it counts
// for these credentials alone. Observers and candidates see it only after Settle, so requests
// without valid credentials do not appear in any statistics.
func (j *Judge) Reserve(ctx context.Context, r Request) Reservation {
	r.Unproven = true
	now, v := j.Clock(), Reservation{request: r}
	j.reserve(ctx, now, &v)
	if v.Rejected() {
		j.conclude(ctx, now, &v, v.Decision)
	}
	return v
}

// reserve is Reserve for a request that arrived at came.
func (j *Judge) reserve(ctx context.Context, came time.Time, v *Reservation) {
	r := &v.request
	for now := came; ; now = j.Clock() {
		e := r.under(j.Policies())
		if d, banned := j.banned(now, r, e); banned {
			v.Decision = d
			return
		}
		if !j.hold(now, v, e) {
			v.Turn = j.lines.Take(ctx, r.Key, func() *ratelimit.Effective { return r.under(j.Policies()) })
			j.bannedMeanwhile(r, &v.Turn)
			return
		}
		v.Waited = now.Sub(came)
		if v.unproven || !j.unproven.pause(ctx, v, e) {
			return
		}
	}
}

// Cancel ends the reservation of a request that got nothing. It does not count.
func (j *Judge) Cancel(v *Reservation) {
	if v.unproven || v.late {
		j.unproven.release(v)
		return
	}
	j.GiveBack(v.request.Key, &v.Turn)
}

// Settle ends the reservation of a request that got a token. username is the user of the token, or
// empty if the user is unknown. The request then counts against this user, even if it was reserved
// for another. Settle returns the decision for the RateLimit fields. late is set if the user had no
// room left, which shows only now. The token cannot be taken back, so the request then counts for
// the total of the client and not for the user.
func (j *Judge) Settle(ctx context.Context, v *Reservation, username string) (d ratelimit.Decision, late bool) {
	j.Prove(ctx, v)
	now, d := j.Clock(), v.Decision
	proven := v.request
	proven.Unproven, proven.Unknown = false, proven.Unknown && username == ""
	if username != "" {
		proven.Key.Username = username
	}
	if v.late {
		late = true // counts under shared limits, as far as they have room
		j.Counters.Take(now, proven.Key, proven.under(j.Policies()).Only(false, true, true), 1)
	} else if proven.Key != v.request.Key && v.counted() {
		d, late = j.settleOn(ctx, now, v, &proven)
	}
	v.request = proven
	j.conclude(ctx, now, v, d)
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
func (j *Judge) settleOn(ctx context.Context, now time.Time, v *Reservation, proven *Request) (d ratelimit.Decision, late bool) {
	whole := proven.under(j.Policies())
	if v.Outcome == ratelimit.WouldDelay { // nothing is reserved yet
		j.Cancel(v)
		d = j.Counters.Take(now, proven.Key, whole, 1)
	} else {
		own, _ := j.Counters.Await(context.WithoutCancel(ctx), now, proven.Key, whole.Own(), 1)
		d = own.WithShared(&v.Decision)
		if !v.request.Unknown {
			reserved := v.Own()
			j.GiveBack(v.request.Key, &reserved)
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
func (j *Judge) conclude(ctx context.Context, now time.Time, v *Reservation, d ratelimit.Decision) {
	decided := v.request
	decided.Unproven = true
	j.observe(ctx, now, &v.request, &Decided{
		Decision: d, Waited: v.Waited, Leased: v.Leased, Tried: j.tryCandidate(ctx, now, j.Policies(), &decided),
	})
}
