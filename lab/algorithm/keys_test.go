package algorithm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
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

func ran(t *testing.T, src traffic.Source, name string, o Options) *run {
	t.Helper()
	r, err := start(src, name, o)
	check.OK(t, err)
	return r
}

// TestIdleKeysAreDropped: what is kept is that of the keys of a time, and the judgement is as if each had come alone.
func TestIdleKeysAreDropped(t *testing.T) {
	t.Parallel()
	const users = 400
	all := visitors(users)
	alone := make([][]traffic.Request, users)
	for _, r := range all {
		var user int
		_, err := fmt.Sscanf(r.User, "u%d", &user)
		check.OK(t, err)
		alone[user] = append(alone[user], r)
	}
	o := Options{Limit: Limit{Requests: 4, Window: time.Second, Burst: 9}}
	for _, name := range []string{Exact, Sliding, TokenBucket, LeakyQueue, GCRA} {
		together := ran(t, &requests{all: all}, name, o)
		check.Equal(t, name+": keys", together.Keys, users)
		check.Equal(t, name+": few at once", len(together.judge.logs) < users/3 && together.keys.most < users/3, true)
		if a, own := together.algorithm.(*own); own {
			check.Equal(t, name+": few counters", a.counters.Len() < users/2, true)
		}
		var sum Result
		sum.Counted = &Counted{}
		for user := range alone {
			add(&sum, &ran(t, &requests{all: alone[user]}, name, o).Result)
		}
		check.Equal(t, name, counts(&together.Result), counts(&sum))
	}
}

func add(sum, r *Result) {
	sum.Admitted += r.Admitted
	sum.Delayed += r.Delayed
	sum.FalseAdmits += r.FalseAdmits
	sum.FalseDenials += r.FalseDenials
	sum.Far += r.Far
	if r.Counted != nil {
		sum.Counted.WronglyAllowed += r.Counted.WronglyAllowed
		sum.Counted.WronglyLimited += r.Counted.WronglyLimited
		sum.Counted.WrongKeys += r.Counted.WrongKeys
	}
}

func counts(r *Result) []int64 {
	all := []int64{r.Admitted, r.Delayed, r.FalseAdmits, r.FalseDenials, r.Far, 0, 0, 0}
	if c := r.Counted; c != nil {
		all[5], all[6], all[7] = c.WronglyAllowed, c.WronglyLimited, int64(c.WrongKeys)
	}
	return all
}

// TestKeysOfOneRequest are dropped as well.
func TestKeysOfOneRequest(t *testing.T) {
	t.Parallel()
	var all []traffic.Request
	for i := range 20_000 {
		all = append(all, at(int64(i)*100, i))
	}
	r := ran(t, &requests{all: all}, Exact, Options{Limit: Limit{Requests: 4, Window: time.Minute}})
	check.Equal(t, "few at once", r.keys.most < 6000, true)
	check.Equal(t, "keys", r.Keys, 20_000)
}

// TestWeights: a request that stands for three counts as three, and the means do not change.
func TestWeights(t *testing.T) {
	t.Parallel()
	o := Options{Limit: Limit{Requests: 4, Window: time.Second, Burst: 9}}
	for _, name := range Fitting(o.Limit) {
		one, three := ran(t, &requests{all: visitors(300)}, name, o), ran(t, &requests{all: visitors(300), weight: 3}, name, o)
		want := counts(&one.Result)
		for i := range want[:7] { // keys have no weight
			want[i] *= 3
		}
		check.Equal(t, name+": counts", counts(&three.Result), want)
		check.Equal(t, name+": denied", three.Denied, 3*one.Denied)
		check.Equal(t, name+": requests", three.Requests, 3*one.Requests)
		if one.Counted != nil {
			check.Equal(t, name+": mean error", math.Abs(three.Counted.RateError-one.Counted.RateError) < 1e-9, true)
			check.Equal(t, name+": near the limit", three.Counted.NearLimit, one.Counted.NearLimit)
			check.Equal(t, name+": mean count", three.Counted.MeanCount, one.Counted.MeanCount)
		}
	}
}

// TestSeriesOfAWrongTime: a time that is decades before the others makes the intervals longer, not more of them.
func TestSeriesOfAWrongTime(t *testing.T) {
	t.Parallel()
	for _, first := range []int64{0, 5000, -61_000} {
		all := []traffic.Request{at(first, 1)}
		for i := range int64(300) {
			all = append(all, at(1_780_000_000_000+i*1000, 1))
		}
		s := ran(t, &requests{all: all}, Sliding, Options{Limit: Limit{Requests: 100, Window: time.Minute}, Series: true}).Series
		n := len(s.Requests)
		check.Equal(t, "as many as there is room for", n > maxIntervals/2 && n <= maxIntervals, true)
		check.Equal(t, "they cover the time", s.Seconds*float64(n) > 1_780_000_000, true)
		check.Equal(t, "the first", s.Requests[0], 1)
		sum := int64(0)
		for _, requests := range s.Requests {
			sum += requests
		}
		check.Equal(t, "sum", sum, 301)
		check.Equal(t, "values at the ends", []int{len(s.Exact), len(s.Estimate), len(s.Tokens)}, []int{n - 1, n - 1, n})
	}
}

// TestWiden: the intervals begin at multiples of their length.
func TestWiden(t *testing.T) {
	t.Parallel()
	s := newSeries(time.Second)
	admitted := traffic.Answer{}
	c := newCounting(estimate{}, Limit{Requests: 1, Window: time.Hour})
	for _, ms := range []int64{3000, 4000, 5000, 6000} {
		s.advance(ms, c, Key{})
		c.count(Key{}, ms, 1)
		s.add(ms, admitted)
	}
	s.widen()
	check.Equal(t, "requests", s.Requests, []int64{1, 2, 1})
	check.Equal(t, "counts at the ends", s.Exact, []int64{1, 3})
	s.advance(8000, c, Key{})
	check.Equal(t, "the one that was half over", s.Exact, []int64{1, 3, 4})
	s.add(8000, admitted)
	check.Equal(t, "tokens", s.Tokens, []int64{1, 2, 1, 1})
}

type estimate struct{}

func (estimate) Estimate(Key, int64) float64 { return 0 }
func (estimate) Count(Key, int64)            {}
