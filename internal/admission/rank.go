package admission

import (
	"context"

	"oauth-server/internal/ratelimit"
)

// Rank orders requests of an overloaded server: those of a lower one are refused first. It is below [Ranks].
type Rank uint8

// Ranks is how many ranks there are: a range of perCriticality for each criticality, lowest first.
const (
	Ranks          = 4 * perCriticality
	perCriticality = 32
)

// criticality is the criticality that the rank belongs to.
func (r Rank) criticality() ratelimit.Criticality {
	return ratelimit.Sheddable + ratelimit.Criticality(r/perCriticality)
}

type rankKey struct{}

// WithRank returns a context that carries the rank of its request.
func WithRank(ctx context.Context, r Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, r)
}

// RankOf returns the rank of the request; the highest for work of the server's own, which has none.
func RankOf(ctx context.Context) Rank {
	if r, ok := Ranked(ctx); ok {
		return r
	}
	return Ranks - 1
}

// Ranked returns the rank of the request, and whether there is one.
func Ranked(ctx context.Context) (Rank, bool) {
	r, ok := ctx.Value(rankKey{}).(Rank)
	return r, ok
}
