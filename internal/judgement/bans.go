package judgement

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/turns"
)

// banned returns the decision on a request of who is banned, or would be in dry-run; false: it is not, or it is not known
// who that is. Nothing is counted of one that is, except by a candidate.
func (j *Judge) banned(now time.Time, r *Request, e *ratelimit.Effective) (ratelimit.Decision, bool) {
	if j.Bans == nil || r.Unknown {
		return ratelimit.Decision{}, false
	}
	return j.Bans.Decide(now, r.Key, e)
}

// bannedMeanwhile has a ban that began while a request waited take the place of the decision. Its turn is that of the
// next.
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

// countDenial counts a request that a limit denied towards a ban, also in dry-run. One whose client or user is not proven is left
// out, and what was to wait for its turn: the stop of this process denies all that do.
func (j *Judge) countDenial(r *Request, e *ratelimit.Effective, t *turns.Turn) {
	// The clock is read again, because the request may have waited for permits.
	if j.Bans != nil && !r.Unproven && !t.Held && t.ThroughLimit() {
		j.Bans.Denied(j.Clock(), r.Key, e)
	}
}
