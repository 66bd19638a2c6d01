package algorithm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/algorithm"
)

// requests is traffic, each request of which stands for several.
type requests struct {
	all    []traffic.Request
	next   int
	weight int64
}

func (s *requests) Next(r *traffic.Request) bool {
	if s.next == len(s.all) {
		return false
	}
	*r = s.all[s.next]
	s.next++
	return true
}

func (*requests) Answer(*traffic.Request, traffic.Answer) {}
func (*requests) Err() error                              { return nil }
func (s *requests) Weight() int64                         { return max(s.weight, 1) }

// at is a request of a user at a time in milliseconds.
func at(ms int64, user int) traffic.Request {
	return traffic.Request{At: time.UnixMilli(ms), Client: "shop", User: fmt.Sprint("u", user)}
}

// visitors are users who come for a while, some of them twice.
func visitors(n int) (all []traffic.Request) {
	random := rand.New(rand.NewPCG(3, 4))
	for user := range n {
		for range 1 + user%2 {
			ms := int64(1_767_225_600_000) + int64(user)*2000 + random.Int64N(40)*1000
			for range 1 + random.IntN(12) {
				all = append(all, at(ms, user))
				ms += random.Int64N(400)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b traffic.Request) int { return a.At.Compare(b.At) })
	return all
}

func counts(r *algorithm.Result) []int64 {
	all := []int64{r.Requests, r.Admitted, r.Denied, r.FalseAdmits, r.FalseDenials, r.Far, 0, 0}
	if c := r.Counted; c != nil {
		all[6], all[7] = c.WronglyAllowed, c.WronglyLimited
	}
	return all
}

// TestWeights: a request that stands for three counts as three, and the means do not change.
func TestWeights(t *testing.T) {
	t.Parallel()
	o := algorithm.Options{Limit: algorithm.Limit{Requests: 4, Window: 1200 * time.Millisecond}}
	for _, name := range algorithm.Names() {
		one, three := result(t, &requests{all: visitors(300)}, name, o), result(t, &requests{all: visitors(300), weight: 3}, name, o)
		want := counts(&one)
		for i := range want {
			want[i] *= 3
		}
		check.Equal(t, name+": counts", counts(&three), want)
		if one.Counted != nil {
			check.Equal(t, name+": wrong keys", three.Counted.WrongKeys, one.Counted.WrongKeys) // they have no weight
			check.Equal(t, name+": mean error", math.Abs(three.Counted.RateError-one.Counted.RateError) < 1e-9, true)
		}
	}
}

// TestKeys: users do not share a limit.
func TestKeys(t *testing.T) {
	t.Parallel()
	all := []traffic.Request{at(0, 1), at(1, 2), at(2, 1), at(3, 2)}
	for _, name := range []string{algorithm.Exact, algorithm.Fixed, algorithm.Sliding, algorithm.Strict, algorithm.TokenBucket} {
		r := result(t, &requests{all: all}, name, algorithm.Options{Limit: algorithm.Limit{Requests: 1, Window: time.Minute}})
		check.Equal(t, name, []int64{r.Admitted, r.Denied, r.WorstWindow}, []int64{2, 2, 1})
	}
}
