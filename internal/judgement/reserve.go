package judgement

import (
	"context"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/turns"
)

// Reservation is the turn of a request before it is known whether it gets a token, and for which user.
type Reservation struct {
	turns.Turn
	request  Request
	unproven bool    // it is not in the counts yet
	held     []level // the keys that it is held for
	crowded  bool
	late     bool // its token was issued, and there was no room left
}

// Crowded reports whether the request must be answered with 429 because others with the same credentials, which are not
// proven, could take all of the room. There is no decision then, and nothing to settle.
func (v *Reservation) Crowded() bool { return v.crowded }

// Reserve is [Judge.Admit] for a request whose client and user are proven later, by the answer of another server. One that
// is not rejected counts until [Judge.Settle], [Judge.Cancel] or [Judge.Refuse], of which the caller calls one, once; with
// [Credentials] that are not proven, it counts for them alone. Observers, and limits
// that are tried out, see it with Settle, so that requests without valid credentials are in no figures.
func (j *Judge) Reserve(ctx context.Context, r Request) Reservation {
	r.Unproven = true
	now, v := j.Clock(), Reservation{request: r}
	j.reserve(ctx, now, &v)
	if v.Rejected() {
		j.conclude(ctx, now, &v, v.Decision)
	}
	return v
}

// reserve is Reserve for a request that came then.
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

// Cancel ends the reservation of a request that got nothing: it does not count.
func (j *Judge) Cancel(v *Reservation) {
	if v.unproven || v.late {
		j.unproven.release(v)
		return
	}
	j.GiveBack(v.request.Key, &v.Turn)
}

// Settle ends the reservation of a request that got a token for that user, or for one who is not known if username is
// empty. The request then counts against the user it is of, whomever it was reserved for. It returns the decision that
// the RateLimit fields are to show. late is set if the user had no room left, which shows only now: the token cannot be
// taken back, so the request counts for the client over all users, and not for that one.
func (j *Judge) Settle(ctx context.Context, v *Reservation, username string) (d ratelimit.Decision, late bool) {
	j.Prove(ctx, v)
	now, d := j.Clock(), v.Decision
	proven := v.request
	proven.Unproven, proven.Unknown = false, proven.Unknown && username == ""
	if username != "" {
		proven.Key.Username = username
	}
	if v.late {
		late = true // for what it shares with others it counts, as far as that has room
		j.Counters.Take(now, proven.Key, proven.under(j.Policies()).Only(false, true, true), 1)
	} else if proven.Key != v.request.Key && v.counted() {
		d, late = j.settleOn(ctx, now, v, &proven)
	}
	v.request = proven
	j.conclude(ctx, now, v, d)
	return d, late
}

// counted reports whether the reservation is in the counts, or will be at its turn.
func (v *Reservation) counted() bool {
	return v.Outcome == ratelimit.Allowed || v.Outcome == ratelimit.Delayed || v.Outcome == ratelimit.WouldDelay
}

// settleOn has a reservation count against the user it is of. What it counts for the client over all users, and for its
// source, stays where it is: given back and taken again, it could meanwhile be taken by another request. Under a strict
// limit it may wait for permits, as Reserve does, also for a client that has gone: the token is issued.
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
	if late || d.Outcome == ratelimit.Allowed { // it has passed as it was reserved
		d.Outcome, d.RetryAfter = v.Outcome, 0
	}
	return d, late
}

// conclude passes the decision on a reservation to the observer. Under limits that are tried out, as under those in force,
// it counts towards no ban: its client was not proven when it was decided.
func (j *Judge) conclude(ctx context.Context, now time.Time, v *Reservation, d ratelimit.Decision) {
	decided := v.request
	decided.Unproven = true
	j.observe(ctx, now, &v.request, &Decided{
		Decision: d, Waited: v.Waited, Leased: v.Leased, Tried: j.tryCandidate(ctx, now, j.Policies(), &decided),
	})
}
