package admission

import (
	"context"
	"math"
	"sync/atomic"

	"oauth-server/internal/ratelimit"
)

// Rank orders requests of an overloaded server: those of a lower one are refused first. It is ordered by criticality,
// then by the tier of the class, then by the standing of the client.
type Rank uint8

// Ranks is how many ranks there are, and Criticalities how many criticalities they have.
const (
	Ranks          = 4 * perCriticality
	perCriticality = tiers * standings
	Criticalities  = Ranks / perCriticality
	standings      = 16
)

// unknown is the standing of a request whose client is not known: that of one that sends its share.
const unknown = 8

func rankOf(c ratelimit.Criticality, class Class, standing int) Rank {
	return Rank(int(c-ratelimit.Sheddable)*perCriticality + classes[class].tier*standings + standing) //nolint:gosec // G115: below Ranks
}

// Criticality is the criticality that the rank belongs to.
func (r Rank) Criticality() ratelimit.Criticality {
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

// ranking is a request and its rank. The request is nil where only the rank is known.
type ranking struct {
	request *Request
	rank    Rank
	paused  atomic.Int32 // how often it is at the moment, see Gate.Pause
}

// WithRequest returns a context that carries a request that was admitted, and its rank; r is nil if only that is known.
func WithRequest(ctx context.Context, r *Request, rank Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, &ranking{request: r, rank: rank})
}

// RankFrom returns the rank that the context carries: the lowest if none was set.
func RankFrom(ctx context.Context) Rank {
	if v := rankingFrom(ctx); v != nil {
		return v.rank
	}
	return 0
}

// Requested returns the request that was admitted; nil if the context carries none.
func Requested(ctx context.Context) *Request {
	if v := rankingFrom(ctx); v != nil {
		return v.request
	}
	return nil
}

func rankingFrom(ctx context.Context) *ranking {
	v, _ := ctx.Value(rankKey{}).(*ranking)
	return v
}
