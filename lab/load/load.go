// Package load sends requests at times that do not depend on the answers, and measures each latency from when its
// request was due: a server that stalls cannot hold back the requests that would have shown it (coordinated
// omission).
//
// One thread, on a processor of its own, polls all connections and never sleeps. So it adds some microseconds and no
// wake-ups, and costs the server nothing where the server has another processor.
package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Stream is requests of one kind.
type Stream struct {
	// Rate is how many are due in a second, at random times, as those of many independent users (a Poisson process).
	// 0: each connection sends the next one as soon as it has an answer.
	Rate float64
	// Connections is how many requests are under way at most. Those that are due meanwhile wait.
	Connections int
	// From is the IPv4 address to connect from; empty: any.
	From string
	// Request returns the bytes of HTTP request number n.
	Request func(n int) []byte
}

// Options are how a load is sent.
type Options struct {
	Address string        // host:port, IPv4
	Core    int           // processor of the thread; below 0: any
	Warm    time.Duration // requests due in it are sent and not counted
	For     time.Duration
	Seed    uint64 // of the times
}

// Result is what came of the requests of a stream that were due in Options.For.
type Result struct {
	// Took has the latency of each, sorted. Of one without an answer it is how long that was missing.
	Took []time.Duration
	// OK has the latency of each that was answered by 200, sorted.
	OK []time.Duration
	// Statuses counts answers by HTTP status; 0 is no answer within a second after the end.
	Statuses map[int]int
	// Rate is how many answers came in a second.
	Rate float64
	// Stalled is for how long this generator did not run, in pieces of at least a millisecond: others had its processor.
	// Latencies have that in them.
	Stalled time.Duration
}

// Percentile returns the latency that p per cent of the requests did not exceed.
func (r *Result) Percentile(p float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[max(int(math.Ceil(float64(len(r.Took))*p/100)), 1)-1]
}

// Succeeded returns the share of requests that were answered by 200 within that time.
func (r *Result) Succeeded(within time.Duration) float64 {
	if len(r.Took) == 0 {
		return 0
	}
	n, _ := slices.BinarySearch(r.OK, within+1)
	return float64(n) / float64(len(r.Took))
}

// lastAnswers is how long answers are waited for at the end.
const lastAnswers = time.Second

// Run sends the streams, and returns the result of each.
func Run(ctx context.Context, o Options, streams ...Stream) ([]Result, error) {
	type outcome struct {
		results []Result
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

func run(ctx context.Context, o Options, streams []Stream) (results []Result, err error) {
	if o.Core >= 0 {
		var only unix.CPUSet
		only.Set(o.Core)
		if err := unix.SchedSetaffinity(0, &only); err != nil {
			return nil, err
		}
	}
	l := &loop{events: make([]unix.EpollEvent, 64), conns: map[int32]*conn{}}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	for i := range streams {
		s := &stream{Stream: streams[i], random: rand.New(rand.NewPCG(o.Seed, uint64(i)))} //nolint:gosec // G404, G115: random times, not a secret
		s.took = make([]time.Duration, 0, int(s.Rate*o.For.Seconds()*1.1)+1000)
		s.statuses = map[int]int{}
		l.streams = append(l.streams, s)
		for range s.Connections {
			if err := l.connect(s, o.Address); err != nil {
				return nil, err
			}
		}
	}
	if err := l.run(ctx, o.Warm, o.For); err != nil {
		return nil, err
	}
	for _, s := range l.streams {
		r := s.result(o.For)
		r.Stalled = l.stalled
		results = append(results, r)
	}
	return results, nil
}

// stream is the state of one.
type stream struct {
	Stream
	random *rand.Rand
	next   time.Duration   // when the next request is due, since the start
	due    []time.Duration // of those that wait, from head on
	head   int
	idle   []*conn
	sent   int

	answered int
	took, ok []time.Duration
	statuses map[int]int
}

func (s *stream) result(d time.Duration) Result {
	slices.Sort(s.took)
	slices.Sort(s.ok)
	return Result{Took: s.took, OK: s.ok, Statuses: s.statuses, Rate: float64(s.answered) / d.Seconds()}
}

// plan adds the requests that are due by now.
func (s *stream) plan(now time.Duration) {
	if s.Rate == 0 {
		for range len(s.idle) - s.waiting() {
			s.due = append(s.due, now)
		}
		return
	}
	for s.next <= now {
		if s.next > 0 {
			s.due = append(s.due, s.next)
		}
		s.next += time.Duration(s.random.ExpFloat64() / s.Rate * float64(time.Second))
	}
}

func (s *stream) waiting() int { return len(s.due) - s.head }

// take returns when the request was due that waits the longest.
func (s *stream) take() time.Duration {
	d := s.due[s.head]
	if s.head++; s.head == len(s.due) {
		s.due, s.head = s.due[:0], 0
	}
	return d
}
