package judgement

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/turns"
)

// banned returns the decision on a request of a banned key, also in dry-run. It returns false if
// the key is not banned, or if the user is unknown. Only a candidate counts a request of a banned
// key.
func (j *Judge) banned(now time.Time, r *Request, e *ratelimit.Effective) (ratelimit.Decision, bool) {
	if j.Bans == nil || r.Unknown {
		return ratelimit.Decision{}, false
	}
	return j.Bans.Decide(now, r.Key, e)
}

// bannedMeanwhile replaces the decision if a ban began while the request waited. The place of the
// request goes to the next one in the queue.
func (j *Judge) bannedMeanwhile(r *Request, t *turns.Turn) {
	if t.Waited == 0 {
		return
	}
	d, banned := j.banned(j.Clock(), r, r.under(j.Policies()))
	if !banned || !d.Rejected() {
		return
	}
	j.GiveBack(r.Key, t)
	t.Decision = d
}

// countDenial counts a request that a limit denied towards a ban, also in dry-run. It ignores
// requests of an unproven client or user. It also ignores requests that waited in a queue, because
// a stopping process denies all of them.
func (j *Judge) countDenial(r *Request, e *ratelimit.Effective, t *turns.Turn) {
	// Read the clock again, because the request may have waited for permits.
	if j.Bans != nil && !r.Unproven && !t.Held && t.ThroughLimit() {
		j.Bans.Denied(j.Clock(), r.Key, e)
	}
}
