package admission

import (
	"context"
	"math"

	"oauth-server/internal/ratelimit"
)

// Rank orders requests of an overloaded server: those of a lower one are refused first. It is ordered by criticality,
// then by the tier of the class, then by the standing of the client.
type Rank uint8

// Ranks is how many ranks there are.
const (
	Ranks          = 4 * perCriticality
	perCriticality = tiers * standings
	standings      = 16
)

// unknown is the standing of a request whose client is not known: that of one that sends its share.
const unknown = 8

func rankOf(c ratelimit.Criticality, class Class, standing int) Rank {
	return Rank(int(c-ratelimit.Sheddable)*perCriticality + classes[class].tier*standings + standing) //nolint:gosec // G115: below Ranks
}

// criticality is the criticality that the rank belongs to.
func (r Rank) criticality() ratelimit.Criticality {
	return ratelimit.Sheddable + ratelimit.Criticality(r/perCriticality) //nolint:gosec // G115: below 4
}

// From this share of its limit on, a client is near its limit.
const near = 0.8

// standing orders clients within a class, 0 to standings-1, lowest first: those near their own limit by how near they
// are, then those that sent more than their share by how much, then the others. usage is the share of its limit
// that the client has used; share is what it sent, by what the average client sent.
func standing(usage, share float64) int {
	if usage >= near {
		return 3 - int(min(3, (usage-near)/(1-near)*4)) // 0 to 3
	}
	if !(share > 0) {
		return standings - 1
	}
	return int(max(4, min(standings-1, math.Round(unknown-2*math.Log2(share)))))
}

type rankKey struct{}

// WithRank returns a context that carries the rank of its request.
func WithRank(ctx context.Context, r Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, r)
}

// RankFrom returns the rank that the context carries: the lowest if none was set.
func RankFrom(ctx context.Context) Rank {
	r, _ := ctx.Value(rankKey{}).(Rank)
	return r
}
