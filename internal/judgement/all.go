package judgement

import (
	"context"

	"oauth-server/internal/ratelimit"
)

// Weighted is a request that counts as so many. With Hits 0 it is decided, and counts as none.
type Weighted struct {
	Request
	Hits int
}

// AdmitAll is [Judge.Admit] for requests that pass together or not at all, and whose clients are not proven: if one is
// rejected, none of them counts. It returns the decision on each, in their order. As with [Judge.Reserve], observers, and
// limits that are tried out, see those that were rejected, and the others only if all of them pass.
func (j *Judge) AdmitAll(ctx context.Context, all []Weighted) []ratelimit.Decision {
	decisions := make([]ratelimit.Decision, len(all))
	var counted []Reservation
	defer func() { // also if a defect has ended the rest
		for i := range counted {
			j.Cancel(&counted[i])
		}
	}()
	rejected := false
	for i := range all {
		decisions[i] = j.reserveHits(ctx, &all[i], &counted)
		rejected = rejected || decisions[i].Rejected()
	}
	if rejected {
		return decisions
	}
	passed := counted
	counted = nil
	for i := range passed {
		j.conclude(ctx, j.Clock(), &passed[i], passed[i].Decision)
	}
	return decisions
}

// reserveHits reserves every hit of a request, up to one that is rejected, and adds those that were not to counted.
func (j *Judge) reserveHits(ctx context.Context, r *Weighted, counted *[]Reservation) (d ratelimit.Decision) {
	if r.Hits == 0 {
		r.Unproven = true
		now := j.Clock()
		denial, denied := j.denies(now, j.Policies(), &r.Request)
		if !denied { // also if it would wait for its turn
			return d
		}
		j.observe(ctx, now, &r.Request, &Decided{Decision: denial}) // a candidate counts it as little as the limits do
		return denial
	}
	for range r.Hits {
		v := j.Reserve(ctx, r.Request)
		d = v.Decision
		if v.Rejected() {
			break
		}
		*counted = append(*counted, v)
	}
	return d
}
