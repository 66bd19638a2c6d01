// Package load sends requests at times that do not depend on the answers, and measures each latency from when its
// request was due: a server that stalls cannot hold back the requests that would have shown it (coordinated
// omission).
//
//	results, err := load.Run(ctx, load.Options{Address: server.Address, Core: process.GeneratorCore, Seed: 1},
//		load.Stream{Phases: load.Steady(1600, 5*time.Second), Connections: 32, Source: load.Repeat(request)})
//
// A stream has a number of connections. A request that is due is sent on an idle one or a new one; while all are busy,
// it waits. With many connections and Patience, it stands for the callers of an overloaded server: all of the offered
// load arrives at once, and callers without an answer in time hang up.
//
// One thread polls all connections. On a processor of its own it never sleeps, so it adds some microseconds and no
// wake-ups. When another program uses that processor, requests are sent late and answers are read late. The gaps of a
// [Result] show both, to tell delays of the generator from delays of the server.
package load

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Call is one request.
type Call struct {
	Class   int // of the request; what it means is up to the source
	ID      int // up to the source, which gets it back
	Request []byte
}

// Source makes the requests of a stream. It is called by one goroutine.
type Source interface {
	// Next returns the next request. ok is false after the last one.
	Next() (c Call, ok bool)
	// Done is called with each answer. The body is valid until Done returns. Of a request without an answer the status is
	// [HungUp] or [Closed].
	Done(c Call, status int, body []byte)
}

// Repeat is a source that sends what request returns for 0, 1, 2 and so on, and ignores the answers.
func Repeat(request func(n int) []byte) Source { return &repeated{request: request} }

type repeated struct {
	request func(n int) []byte
	sent    int
}

// Next implements [Source].
func (r *repeated) Next() (Call, bool) {
	r.sent++
	return Call{Request: r.request(r.sent - 1)}, true
}

// Done implements [Source].
func (*repeated) Done(Call, int, []byte) {}

// What becomes of a request without an answer, where others have their HTTP status.
const (
	HungUp = 0  // after Stream.Patience, or a second after the end
	Closed = -1 // the server closed the connection
)

// Phase is a part of a load.
type Phase struct {
	For  time.Duration
	Rate float64 // requests due in a second, at random times, as those of many independent users (a Poisson process)
}

// Steady returns the phases of a load with one rate.
func Steady(rate float64, d time.Duration) []Phase { return []Phase{{For: d, Rate: rate}} }

// Stream is requests of one source.
type Stream struct {
	Phases []Phase
	// Closed, if above 0, is how many requests are always under way; the rates of the phases have no meaning then.
	Closed int
	// Patience is how long after it was due a caller hangs up. 0: not before the end.
	Patience time.Duration
	// Connections is the maximum number of connections; 0: as many as Closed.
	Connections int
	// From are the IPv4 addresses to connect from, by turns; none: any.
	From   []string
	Source Source
}

// Options are how a load is sent.
type Options struct {
	Address string // host:port, IPv4
	Core    int    // processor of the thread, which never sleeps then; below 0: any, and it sleeps for up to a millisecond
	Seed    uint64 // of the times
}

// Record is the outcome of a request. Times are since the start.
type Record struct {
	Class  int
	Status int           // of the answer, or HungUp or Closed
	Due    time.Duration // when it should have been sent
	Sent   time.Duration // when it was sent; 0 if never, for lack of a connection
	Done   time.Duration // when its answer was complete, or its caller hung up
}

// Took returns the latency, from when the request was due.
func (r *Record) Took() time.Duration { return r.Done - r.Due }

// Gap is an interval during which the generator did not run, because another program used its
// processor.
type Gap struct{ From, To time.Duration }

// Result is the outcome of a stream.
type Result struct {
	Began   time.Time
	Records []Record // in the order of their ends
	Gaps    []Gap    // of a millisecond and more
	Opened  int      // connections
}

// Stalled returns the share of an interval during which the generator did not run.
func (r *Result) Stalled(from, to time.Duration) (share float64) {
	for _, g := range r.Gaps {
		if g.From >= from && g.From < to {
			share += (g.To - g.From).Seconds() / (to - from).Seconds()
		}
	}
	return share
}

// Figures are the requests of a stream that were due in an interval.
type Figures struct {
	// Took has the latency of each, sorted. Of one without an answer it is how long that was missing.
	Took []time.Duration
	// OK has the latency of each that was answered by 200, sorted.
	OK []time.Duration
	// Statuses counts outcomes.
	Statuses map[int]int
	// Rate is how many answers came in a second of the interval, of all requests.
	Rate float64
	// Stalled is the share of the interval during which the generator did not run. Latencies include it.
	Stalled float64
}

// Between returns the figures of [from, to).
func (r *Result) Between(from, to time.Duration) Figures {
	return r.Where(from, to, func(*Record) bool { return true })
}

// Where returns the figures of the requests in [from, to) that count.
func (r *Result) Where(from, to time.Duration, counts func(one *Record) bool) Figures {
	f := Figures{Statuses: map[int]int{}, Stalled: r.Stalled(from, to)}
	answered := 0
	for i := range r.Records {
		one := &r.Records[i]
		if one.Status > 0 && one.Done >= from && one.Done < to {
			answered++
		}
		if one.Due < from || one.Due >= to || !counts(one) {
			continue
		}
		f.Took = append(f.Took, one.Took())
		f.Statuses[one.Status]++
		if one.Status == http.StatusOK {
			f.OK = append(f.OK, one.Took())
		}
	}
	slices.Sort(f.Took)
	slices.Sort(f.OK)
	f.Rate = float64(answered) / (to - from).Seconds()
	return f
}

// Succeeded returns the share of requests that were answered by 200 within that time.
func (f *Figures) Succeeded(within time.Duration) float64 {
	if len(f.Took) == 0 {
		return 0
	}
	n, _ := slices.BinarySearch(f.OK, within+1)
	return float64(n) / float64(len(f.Took))
}

// Percentile returns what p per cent of the sorted values do not exceed (the nearest rank); 0 of none.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p*float64(len(sorted))/100 - 1e-9)) // 99.9 % of 1000 is a little above 999
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Run sends the streams, and returns the result of each.
func Run(ctx context.Context, o Options, streams ...Stream) ([]*Result, error) {
	type outcome struct {
		results []*Result
		err     error
	}
	done := make(chan outcome)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		results, err := run(ctx, o, streams)
		done <- outcome{results, err}
	}()
	d := <-done
	return d.results, d.err
}

func run(ctx context.Context, o Options, streams []Stream) (_ []*Result, err error) {
	if o.Core >= 0 {
		var only unix.CPUSet
		only.Set(o.Core)
		if err := unix.SchedSetaffinity(0, &only); err != nil {
			return nil, err
		}
	}
	l, err := newLoop(o, streams)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	var results []*Result
	for _, s := range l.streams {
		s.result.Began, s.result.Gaps = l.began, l.gaps
		results = append(results, &s.result)
	}
	return results, nil
}
