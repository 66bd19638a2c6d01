package overload

import (
	"context"
	"math"
	"sync/atomic"

	"oauth-server/internal/ratelimit"
)

// Rank orders the requests of an overloaded server. Lower ranks are refused first. Ranks are
// ordered by criticality, then by the tier of the class, then by the standing of the client.
type Rank uint8

// Ranks is the number of ranks. Criticalities is the number of criticalities.
const (
	Ranks          = 4 * perCriticality
	perCriticality = tiers * standings
	Criticalities  = Ranks / perCriticality
	standings      = 16
)

// unknown is the standing of a request of an unknown client. It equals the standing of a client
// that sends its share.
const unknown = 8

func rankOf(c ratelimit.Criticality, class Class, standing int) Rank {
	return Rank(int(c-ratelimit.Sheddable)*perCriticality + classes[class].tier*standings + standing) //nolint:gosec // G115: below Ranks
}

// Criticality returns the criticality of the rank.
func (r Rank) Criticality() ratelimit.Criticality {
	return ratelimit.Sheddable + ratelimit.Criticality(r/perCriticality) //nolint:gosec // G115: below 4
}

// near is the used share of its limit above which a client is near its limit.
const near = 0.8

// standing orders clients within a class, from 0 to standings-1, lowest first. First come clients
// near their limit, ordered by how near they are, then clients that sent more than their share,
// ordered by how much, then the others. usage is the used share of the client's limit. share is the
// number of its requests divided by the average of all clients.
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

// ranking is a request and its rank. The request is nil if only the rank is known.
type ranking struct {
	request *Request
	rank    Rank
	paused  atomic.Int32 // the number of current pauses, see Shedder.Pause
}

// WithRequest returns a context that carries an admitted request and its rank. r is nil if only the
// rank is known.
func WithRequest(ctx context.Context, r *Request, rank Rank) context.Context {
	return context.WithValue(ctx, rankKey{}, &ranking{request: r, rank: rank})
}

// RankFrom returns the rank in the context, or the lowest rank.
func RankFrom(ctx context.Context) Rank {
	if v := rankingFrom(ctx); v != nil {
		return v.rank
	}
	return 0
}

// Requested returns the admitted request in the context, or nil.
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
