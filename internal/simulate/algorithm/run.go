package algorithm

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// Options say how traffic is run.
type Options struct {
	Limit  Limit
	Per    time.Duration // interval of spikes and series; whole milliseconds; 0 stands for a second
	Series bool          // return values over time
	// Progress is called now and then, by several goroutines: an algorithm has got to the request of that time, and
	// decided on so many. Nil: it is not.
	Progress func(algorithm string, requests int64, at time.Time)
}

// progressEvery is after how many requests an algorithm tells how far it is.
const progressEvery = 1 << 16

// Compare runs the algorithms of these names, each on traffic of its own that open returns. Results are in the order of
// the names.
func Compare(names []string, open func() (traffic.Source, error), o Options) ([]Result, error) {
	results, errs := make([]Result, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, name := range names {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			src, err := open()
			if err == nil {
				results[i], err = Run(src, name, o)
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Run runs the algorithm of that name on traffic until it ends. Requests that failed for another reason than a limit
// are left out, as the limiter leaves them out.
func Run(src traffic.Source, name string, o Options) (Result, error) {
	a, err := New(name, o.Limit)
	if err != nil {
		return Result{}, err
	}
	e, err := NewEstimator(name, o.Limit)
	if err != nil {
		return Result{}, err
	}
	if o.Per == 0 {
		o.Per = time.Second
	}
	r := run{algorithm: a, keys: keys{numbers: map[ratelimit.Key]int{}}, judge: newJudge(o), Result: Result{Algorithm: name}}
	if e != nil {
		r.counting = newCounting(e, o.Limit)
	}
	if o.Series {
		r.series = &series{every: o.Per.Milliseconds()}
	}
	sampled, _ := src.(Sampled)
	decided := int64(0)
	var req traffic.Request
	for src.Next(&req) {
		if req.Failed {
			continue
		}
		if len(r.keys.numbers) >= maxKeys {
			return Result{}, fmt.Errorf("more than %d clients and users: that many are not compared", maxKeys)
		}
		weight := int64(1)
		if sampled != nil {
			weight = sampled.Weight()
			r.Sampled = r.Sampled || weight > 1
		}
		src.Answer(&req, r.request(&req, weight))
		if decided++; decided%progressEvery == 0 && o.Progress != nil {
			o.Progress(name, decided, req.At)
		}
	}
	r.finish()
	return r.Result, src.Err()
}

// Sampled is traffic of which only a sample is made.
type Sampled interface {
	// Weight returns how many requests the one that Next yielded last stands for, all with the same answer.
	Weight() int64
}

// run is an algorithm on its traffic.
type run struct {
	Result
	algorithm   Algorithm
	keys        keys
	judge       judge
	counting    *counting // nil: there is no estimate
	series      *series   // nil: not asked for
	first, last int64
}

// request decides on a request that stands for so many, and judges the decision.
func (r *run) request(req *traffic.Request, weight int64) traffic.Answer {
	ms, k := req.At.UnixMilli(), r.keys.of(req)
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
	r.Keys = len(r.keys.numbers)
	r.Seconds = float64(r.last-r.first) / 1000
	if r.counting != nil {
		r.Counted = r.counting.result()
	}
	if r.series != nil {
		r.Series = r.series.result()
	}
}

// keys numbers keys.
type keys struct {
	numbers map[ratelimit.Key]int
	first   Key
}

func (ks *keys) of(r *traffic.Request) Key {
	k := Key{Key: ratelimit.Key{ClientID: r.Client, Username: r.User}}
	n, known := ks.numbers[k.Key]
	if !known {
		n = len(ks.numbers)
		ks.numbers[k.Key] = n
	}
	k.Number = n
	if n == 0 {
		ks.first = k
	}
	return k
}
