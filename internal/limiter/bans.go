package limiter

import (
	"time"

	"oauth-server/internal/ratelimit"
)

// banned returns the decision on a request of a banned key, also in dry-run. It returns false if
// the key is not banned, or if the user is unknown. Only a candidate counts a request of a banned
// key.
func (l *Limiter) banned(now time.Time, r *Request, e *ratelimit.Effective) (ratelimit.Decision, bool) {
	if l.Bans == nil || r.Unknown {
		return ratelimit.Decision{}, false
	}
	return l.Bans.Decide(now, r.Key, e)
}

// bannedMeanwhile replaces the decision if a ban began while the request waited. The place of the
// request goes to the next one in the queue.
func (l *Limiter) bannedMeanwhile(r *Request, t *Admission) {
	if t.Waited == 0 {
		return
	}
	d, banned := l.banned(l.Clock(), r, r.under(l.Policies()))
	if !banned || !d.Rejected() {
		return
	}
	l.GiveBack(r.Key, t)
	t.Decision = d
}

// countDenial counts a request that a limit denied towards a ban, also in dry-run. It ignores
// requests of an unproven client or user. It also ignores requests that waited in a queue, because
// a stopping process denies all of them.
func (l *Limiter) countDenial(r *Request, e *ratelimit.Effective, t *Admission) {
	// Read the clock again, because the request may have waited for permits.
	if l.Bans != nil && !r.Unproven && !t.Held && t.ThroughLimit() {
		l.Bans.Denied(l.Clock(), r.Key, e)
	}
}
