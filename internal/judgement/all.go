package judgement

import (
	"context"

	"oauth-server/internal/ratelimit"
)

// Weighted is a request that counts Hits times. With Hits 0 it is decided but not counted.
type Weighted struct {
	Request
	Hits int
}

// AdmitAll is [Judge.Admit] for requests that pass together or not at all. Their clients need not
// be proven. If one request is rejected, none of them counts. AdmitAll returns the decisions in the
// order of the requests. As with [Judge.Reserve], observers and candidates see a rejected request
// in any case, and the other requests only if all of them pass.
func (j *Judge) AdmitAll(ctx context.Context, all []Weighted) []ratelimit.Decision {
	decisions := make([]ratelimit.Decision, len(all))
	var counted []Reservation
	defer func() { // also after a panic
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

// reserveHits reserves every hit of a request until one is rejected. It appends the reservations
// that were not rejected to counted.
func (j *Judge) reserveHits(ctx context.Context, r *Weighted, counted *[]Reservation) (d ratelimit.Decision) {
	if r.Hits == 0 {
		r.Unproven = true
		now := j.Clock()
		denial, denied := j.denies(now, j.Policies(), &r.Request)
		if !denied { // it may still have to wait in a queue
			return d
		}
		j.observe(ctx, now, &r.Request, &Decided{Decision: denial}) // like the limits in force, a candidate does not count it
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
