package openloop

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Call is one request.
type Call struct {
	Class   int // of the request; what it means is up to the source
	ID      int // up to the source, which gets it back
	Request []byte
}

// Source makes the requests. It is called by one goroutine.
type Source interface {
	// Next returns the next request.
	Next() Call
	// Done is called with each answer. The body is valid until Done returns. Of a request without an answer the status is
	// [HungUp] or [Closed].
	Done(c Call, status int, body []byte)
}

// What becomes of a request without an answer, where others have their HTTP status.
const (
	HungUp = 0  // after Options.Patience
	Closed = -1 // the server closed the connection
)

// Phase is a part of a load.
type Phase struct {
	For  time.Duration
	Rate float64 // requests due in a second, at random times, as those of many independent users (a Poisson process)
}

// Options are how a load is sent.
type Options struct {
	Address string // host:port, IPv4
	Core    int    // processor of the thread; below 0: any
	Phases  []Phase
	// Closed, if above 0, is how many requests are always under way; the rates of the phases have no meaning then.
	Closed int
	// Patience is how long after it was due a caller hangs up. 0: not before the end.
	Patience time.Duration
	// Connections is the maximum number of connections. While all are busy, due requests wait.
	Connections int
	// From are the IPv4 addresses to connect from, by turns; none: any.
	From []string
	Seed uint64 // of the times
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

// Result is the outcome of a load.
type Result struct {
	Began   time.Time
	Records []Record // in the order in which they ended
	Gaps    []Gap    // of a millisecond and more
	Opened  int      // connections
}

// Run sends a load.
func Run(ctx context.Context, o Options, source Source) (*Result, error) {
	type outcome struct {
		result *Result
		err    error
	}
	done := make(chan outcome)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		result, err := run(ctx, o, source)
		done <- outcome{result, err}
	}()
	d := <-done
	return d.result, d.err
}

func run(ctx context.Context, o Options, source Source) (_ *Result, err error) {
	if o.Core >= 0 {
		var only unix.CPUSet
		only.Set(o.Core)
		if err := unix.SchedSetaffinity(0, &only); err != nil {
			return nil, err
		}
	}
	l, err := newLoop(o, source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	return &l.result, nil
}

// schedule gives the times at which requests are due.
type schedule struct {
	phases []Phase
	random *rand.Rand
	next   time.Duration // when the next request is due
	end    time.Duration // of the phases so far
}

func newSchedule(phases []Phase, seed uint64) *schedule {
	s := &schedule{phases: phases, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // G404: random times, not a secret
	s.begin()
	return s
}

// begin sets the first time of the next phase.
func (s *schedule) begin() {
	if len(s.phases) > 0 {
		s.next = s.end
		s.end += s.phases[0].For
		s.advance()
	}
}

// advance sets the next time. Where it is behind the end of the phase, the next phase begins there.
func (s *schedule) advance() {
	rate := s.phases[0].Rate
	if rate > 0 {
		s.next += time.Duration(s.random.ExpFloat64() / rate * float64(time.Second))
	}
	if rate <= 0 || s.next >= s.end {
		s.phases = s.phases[1:]
		s.begin()
	}
}

// due returns the earliest time that is not after now, and whether there is one.
func (s *schedule) due(now time.Duration) (time.Duration, bool) {
	if len(s.phases) == 0 || s.next > now {
		return 0, false
	}
	at := s.next
	s.advance()
	return at, true
}

// over returns the length of all phases.
func over(phases []Phase) (sum time.Duration) {
	for _, p := range phases {
		sum += p.For
	}
	return sum
}
