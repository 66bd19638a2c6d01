package limiter

import (
	"context"

	"oauth-server/internal/ratelimit"
)

// Weighted is a request that counts Hits times. With Hits 0 it is decided but not counted.
type Weighted struct {
	Request
	Hits int
}

// AdmitAll is [Limiter.Admit] for requests that pass together or not at all. Their clients need not
// be proven. If one request is rejected, none of them counts. AdmitAll returns the decisions in the
// order of the requests. As with [Limiter.Reserve], observers and candidates see a rejected request
// in any case, and the other requests only if all of them pass.
func (l *Limiter) AdmitAll(ctx context.Context, all []Weighted) []ratelimit.Decision {
	decisions := make([]ratelimit.Decision, len(all))
	var counted []Reservation
	defer func() { // also after a panic
		for i := range counted {
			l.Cancel(&counted[i])
		}
	}()
	rejected := false
	for i := range all {
		decisions[i] = l.reserveHits(ctx, &all[i], &counted)
		rejected = rejected || decisions[i].Rejected()
	}
	if rejected {
		return decisions
	}
	passed := counted
	counted = nil
	for i := range passed {
		l.conclude(ctx, l.Clock(), &passed[i], passed[i].Decision)
	}
	return decisions
}

// reserveHits reserves every hit of a request until one is rejected. It appends the reservations
// that were not rejected to counted.
func (l *Limiter) reserveHits(ctx context.Context, r *Weighted, counted *[]Reservation) (d ratelimit.Decision) {
	if r.Hits == 0 {
		r.Unproven = true
		now := l.Clock()
		denial, denied := l.denies(now, l.Policies(), &r.Request)
		if !denied { // it may still have to wait in a queue
			return d
		}
		l.observe(ctx, now, &r.Request, &Decided{Decision: denial}) // like the limits in force, a candidate does not count it
		return denial
	}
	for range r.Hits {
		v := l.Reserve(ctx, r.Request)
		d = v.Decision
		if v.Rejected() {
			break
		}
		*counted = append(*counted, v)
	}
	return d
}
