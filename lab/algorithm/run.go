package algorithm

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// Options say how traffic is run.
type Options struct {
	Limit  Limit
	Per    time.Duration // interval of spikes and series; whole milliseconds; 0 stands for a second
	Series bool          // return values over time
}

// stopEvery is after how many requests an algorithm looks whether its context has ended.
const stopEvery = 1 << 16

// Compare runs the algorithms of these names, each on traffic of its own that open returns, and closes the traffic when its
// algorithm ends, if it has a method Close. Results are in the order of the names. The first error stops all.
//
// The first algorithm runs alone: how many keys it has at once says how many of the others fit into memory together.
func Compare(ctx context.Context, names []string, open func() (traffic.Source, error), o Options) ([]Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]Result, len(names))
	one := func(i int) (mostKeys int) {
		r, err := runOn(ctx, open, names[i], o)
		if err != nil {
			stop(err)
			return 0
		}
		results[i] = r.Result
		return r.keys.most
	}
	if len(names) == 0 {
		return results, nil
	}
	slots := make(chan struct{}, atOnce(one(0)))
	var all sync.WaitGroup
	for i := 1; i < len(names); i++ {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			one(i)
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

// keysAtOnce bounds the keys of all algorithms that run at the same time, and with them the memory.
const keysAtOnce = 500_000

// atOnce is how many algorithms with so many keys run at the same time.
func atOnce(keys int) int { return min(max(keysAtOnce/max(keys, 1), 1), runtime.GOMAXPROCS(0)) }

// runOn opens the traffic, runs an algorithm on it and closes it.
func runOn(ctx context.Context, open func() (traffic.Source, error), name string, o Options) (*run, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	src, err := open()
	if err != nil {
		return nil, err
	}
	if c, closes := src.(interface{ Close() }); closes {
		defer c.Close()
	}
	return start(ctx, src, name, o)
}

// Run runs the algorithm of that name on traffic until it ends. Requests that failed for another reason than a limit
// are left out, as the limiter leaves them out.
func Run(ctx context.Context, src traffic.Source, name string, o Options) (Result, error) {
	r, err := start(ctx, src, name, o)
	if err != nil {
		return Result{}, err
	}
	return r.Result, nil
}

// start makes a run, and returns it when it has ended.
func start(ctx context.Context, src traffic.Source, name string, o Options) (*run, error) {
	a, err := New(name, o.Limit)
	if err != nil {
		return nil, err
	}
	e, err := NewEstimator(name, o.Limit)
	if err != nil {
		return nil, err
	}
	if o.Per == 0 {
		o.Per = time.Second
	}
	r := &run{algorithm: a, keys: newKeys(o.Limit), judge: newJudge(o), Result: Result{Algorithm: name}}
	if e != nil {
		r.counting = newCounting(e, o.Limit)
	}
	if o.Series {
		r.series = newSeries(o.Per)
	}
	if err := r.all(ctx, src); err != nil {
		return nil, err
	}
	r.finish()
	return r, src.Err()
}

// all runs the algorithm on all requests.
func (r *run) all(ctx context.Context, src traffic.Source) error {
	sampled, _ := src.(Sampled)
	decided := int64(0)
	var req traffic.Request
	for src.Next(&req) {
		if req.Failed {
			continue
		}
		if len(r.keys.seen) >= maxKeys {
			return fmt.Errorf("more than %d clients and users: that many are not compared", maxKeys)
		}
		weight := int64(1)
		if sampled != nil {
			weight = sampled.Weight()
			r.Sampled = r.Sampled || weight > 1
		}
		src.Answer(&req, r.request(&req, weight))
		if decided++; decided%stopEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Sampled is traffic that yields only a sample of its requests.
type Sampled interface {
	// Weight returns how many requests the last one from Next stands for. All get the same answer.
	Weight() int64
}

// run is one algorithm running on traffic.
type run struct {
	Result
	algorithm   Algorithm
	keys        keys
	judge       judge
	counting    *counting // nil if the algorithm has no estimate
	series      *series   // nil if not requested
	first, last int64
}

// request decides on a request that stands for weight requests, and checks the decision.
func (r *run) request(req *traffic.Request, weight int64) traffic.Answer {
	ms := req.At.UnixMilli()
	k := r.keys.of(req, ms)
	if r.Requests == 0 {
		r.first = ms
	}
	r.last = ms
	if r.series != nil {
		r.series.advance(ms, r.counting, r.keys.first)
	}
	answer := r.algorithm.Admit(k, ms)
	r.judge.judge(k, ms, answer, weight, &r.Result)
	if r.counting != nil {
		r.counting.count(k, ms, weight)
	}
	if r.series != nil {
		r.series.add(ms, answer)
	}
	return answer
}

// finish completes the result.
func (r *run) finish() {
	r.Keys = len(r.keys.seen)
	r.Seconds = float64(r.last-r.first) / 1000
	if r.counting != nil {
		r.Counted = r.counting.result()
	}
	if r.series != nil {
		r.Series = r.series.result()
	}
}
