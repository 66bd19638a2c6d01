package algorithm

import (
	"time"

	"oauth-server/internal/simulate/traffic"
)

// Options say how traffic is run.
type Options struct {
	Limit  Limit
	Per    time.Duration // interval of spikes and series; whole milliseconds; 0 stands for a second
	Series bool          // return values over time
}

// Run runs the algorithm of that name on traffic until it ends. Requests that failed for another reason than a limit
// are left out, as the limiter leaves them out.
func Run(src traffic.Source, name string, o Options) (Result, error) {
	r, err := start(src, name, o)
	if err != nil {
		return Result{}, err
	}
	return r.Result, nil
}

// start makes a run, and returns it when it has ended.
func start(src traffic.Source, name string, o Options) (*run, error) {
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
	r.all(src)
	r.finish()
	return r, src.Err()
}

// all runs the algorithm on all requests.
func (r *run) all(src traffic.Source) {
	sampled, _ := src.(Sampled)
	var req traffic.Request
	for src.Next(&req) {
		if req.Failed {
			continue
		}
		weight := int64(1)
		if sampled != nil {
			weight = sampled.Weight()
			r.Sampled = r.Sampled || weight > 1
		}
		src.Answer(&req, r.request(&req, weight))
	}
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
