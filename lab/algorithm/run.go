package algorithm

import (
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// Options say how traffic is run.
type Options struct {
	Limit  Limit
	Per    time.Duration // interval of spikes and series; whole milliseconds; 0 stands for a second
	Series bool          // return values over time
}

// Run runs the algorithm of that name on traffic until it ends. It panics for an unknown name or an invalid limit.
func Run(src traffic.Source, name string, o Options) (Result, error) {
	if o.Per == 0 {
		o.Per = time.Second
	}
	r := &run{
		Options: o, algorithm: New(name, o.Limit), keys: map[ratelimit.Key]int{}, deciding: newDeciding(o), Result: Result{Algorithm: name},
	}
	if e := NewEstimator(name, o.Limit); e != nil {
		r.counting = newCounting(e, o.Limit)
	}
	sampled, _ := src.(Sampled)
	var req traffic.Request
	for src.Next(&req) {
		weight := int64(1)
		if sampled != nil {
			weight = sampled.Weight()
			r.Sampled = r.Sampled || weight > 1
		}
		src.Answer(&req, r.request(&req, weight))
	}
	return r.finish(), src.Err()
}

// Sampled is traffic that yields only a sample of its requests.
type Sampled interface {
	// Weight returns how many requests the last one from Next stands for. All get the same answer.
	Weight() int64
}

// run is one algorithm running on traffic.
type run struct {
	Options
	Result
	algorithm   Algorithm
	keys        map[ratelimit.Key]int // their numbers
	one         Key                   // number 0: a series has its values
	deciding    deciding
	counting    *exactCount // nil if the algorithm has no estimate
	series      *series     // nil if not requested
	first, last int64
}

// key returns the key of a request.
func (r *run) key(req *traffic.Request) Key {
	k := Key{Key: ratelimit.Key{ClientID: req.Client, Username: req.User}}
	n, known := r.keys[k.Key]
	if !known {
		n = len(r.keys)
		r.keys[k.Key] = n
	}
	if k.Number = n; n == 0 {
		r.one = k
	}
	return k
}

// request decides on a request that stands for weight requests, and checks the decision.
func (r *run) request(req *traffic.Request, weight int64) traffic.Answer {
	ms := req.At.UnixMilli()
	k := r.key(req)
	if r.Requests == 0 {
		r.first = ms
		if r.Options.Series {
			r.series = newSeries(r.Per, ms)
		}
	}
	r.last = ms
	if r.series != nil {
		r.series.advance(ms, r.counting, r.one)
	}
	answer := r.algorithm.Admit(k, ms)
	r.deciding.check(k, ms, answer, weight, &r.Result)
	if r.counting != nil {
		r.counting.count(k, ms, weight)
	}
	if r.series != nil {
		r.series.add(ms, answer)
	}
	return answer
}

// finish completes the result.
func (r *run) finish() Result {
	r.Seconds = float64(r.last-r.first) / 1000
	if r.counting != nil {
		r.Counted = r.counting.result()
	}
	if r.series != nil {
		r.Result.Series = r.series.result()
	}
	return r.Result
}
