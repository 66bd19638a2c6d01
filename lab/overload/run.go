package overload

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"oauth-server/lab/machine"
	"oauth-server/lab/openloop"
)

// patience is how long a caller waits after its request was due before it hangs up.
const patience = time.Second

// connections is the maximum number of requests under way.
const connections = 8192

// addresses are the source addresses of requests. There are several, to make sign-ins come from many
// people.
func addresses() (all []string) {
	for n := range 200 {
		all = append(all, fmt.Sprintf("127.0.1.%d", n+1))
	}
	return all
}

// load is a load of a mix.
type load struct {
	mix    Mix
	phases []openloop.Phase
	closed int
	seed   uint64
}

// sent is the result of a load.
type sent struct {
	*openloop.Result
	usage           []usage
	metrics, before map[string]float64
}

// send sends a load, and samples the server's usage during it.
func (w *world) send(l load) (*sent, error) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the generator has its processor for itself
	ctx, cancel := context.WithCancel(w.tb.Context())
	defer cancel()
	s := &sent{}
	var err error
	if s.before, err = w.server.Metrics(ctx); err != nil {
		return nil, err
	}
	sampled := make(chan []usage)
	go func() { sampled <- sample(ctx, w.server.PID()) }()
	source := newMixed(w, l.mix, l.seed)
	o := openloop.Options{
		Address: w.server.Address, Core: w.core, Phases: l.phases, Closed: l.closed, Patience: patience,
		Connections: connections, From: addresses(), Seed: l.seed,
	}
	if l.closed > 0 {
		o.Patience, o.Connections = 0, l.closed
	}
	s.Result, err = openloop.Run(ctx, o, source)
	cancel()
	s.usage = <-sampled
	if err != nil {
		return nil, err
	}
	if source.lacked != nil {
		return nil, source.lacked
	}
	s.metrics, err = w.server.Metrics(w.tb.Context())
	return s, err
}

// stalled returns the share of an interval during which the generator did not run.
func (s *sent) stalled(from, to time.Duration) (share float64) {
	for _, g := range s.Gaps {
		if g.From >= from && g.From < to {
			share += (g.To - g.From).Seconds() / (to - from).Seconds()
		}
	}
	return share
}

// hashed returns how many passwords were hashed in that place: server or process.
func (s *sent) hashed(place string) float64 {
	name := fmt.Sprintf("oauth_password_hashes_total{place=%q}", place)
	return s.metrics[name] - s.before[name]
}

// settle waits until neither the server nor other programs have work left, for at most w.quiet.
func (w *world) settle() {
	const tick, quiet = time.Second / 2, 0.1
	for began := time.Now(); time.Since(began) < w.quiet; {
		before, err := busy()
		<-time.After(tick)
		after, also := busy()
		if err != nil || also != nil || (after-before).Seconds() < quiet*tick.Seconds() {
			return
		}
	}
}

// busy returns the sum of the busy times of both processors.
func busy() (sum time.Duration, err error) {
	for _, core := range []int{machine.ServerCore, machine.GeneratorCore} {
		b, _, err := processor(core)
		if err != nil {
			return 0, err
		}
		sum += b
	}
	return sum, nil
}

// cost measures the processor time of a request of class c, sent without pauses and without other
// classes. others is the share of the processor that other programs used.
func (w *world) cost(c Class, lasts time.Duration) (_ Cost, others float64, err error) {
	w.settle()
	const atOnce = 4 // of one processor: some wait, and hashes are never waited for
	s, err := w.send(load{mix: only(c), phases: []openloop.Phase{{For: lasts}}, closed: atOnce, seed: 1})
	if err != nil {
		return Cost{}, 0, fmt.Errorf("cost of %s: %w", c, err)
	}
	for _, r := range s.Records {
		if c == Denied && r.Status == Greedy.wanted() {
			continue // until it is over its limit
		}
		if r.Status == 503 && (c == SignIn || c == WrongPassword) {
			continue // another program has the processor
		}
		if r.Status != c.wanted() && r.Status != openloop.HungUp { // those under way at the end
			return Cost{}, 0, fmt.Errorf("cost of %s: an answer is %d", c, r.Status)
		}
	}
	if len(s.Records) == 0 {
		return Cost{}, 0, fmt.Errorf("cost of %s: no answers", c)
	}
	used := between(s.usage, s.Began, s.Began.Add(lasts))
	micros := 1e6 / (float64(len(s.Records)) / lasts.Seconds())
	return Cost{Class: c.String(), Server: used.server * micros, Hashing: used.children * micros, N: len(s.Records)}, used.others + s.stalled(0, lasts), nil
}

// refusedCost measures the server's processor time for a request that it refuses. It sends sign-ins
// without pauses, and the server refuses nearly all of them. The cost includes everything that the
// server does during the measurement except hashing.
func (w *world) refusedCost(control string, lasts time.Duration) (c Cost, ok bool, err error) {
	w.settle()
	const atOnce = 64
	s, err := w.send(load{mix: only(SignIn), phases: []openloop.Phase{{For: lasts}}, closed: atOnce, seed: 1})
	if err != nil {
		return Cost{}, false, err
	}
	refused := 0
	for _, r := range s.Records {
		if r.Status == 503 {
			refused++
		}
	}
	used := between(s.usage, s.Began, s.Began.Add(lasts))
	micros := 1e6 / (float64(len(s.Records)) / lasts.Seconds())
	c = Cost{Class: "refused (503), control " + control, Server: used.server * micros, N: refused}
	return c, refused > len(s.Records)*9/10, nil
}

// capacity returns how many requests of a mix the server answers a second while some are always under
// way. others is the same as for cost.
func (w *world) capacity(m Mix, lasts time.Duration) (rate, others float64, err error) {
	w.settle()
	const atOnce = 16
	s, err := w.send(load{mix: m, phases: []openloop.Phase{{For: lasts}}, closed: atOnce, seed: 2})
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for _, r := range s.Records {
		switch {
		case r.Status == openloop.HungUp: // under way at the end
		case r.Status == 503 && Class(r.Class) == SignIn: // it would wait too long for its turn
		case r.Status != Class(r.Class).wanted():
			return 0, 0, fmt.Errorf("capacity: %s is answered by %d", Class(r.Class), r.Status)
		case r.Done < lasts:
			n++
		}
	}
	used := between(s.usage, s.Began, s.Began.Add(lasts))
	return float64(n) / lasts.Seconds(), used.others + s.stalled(0, lasts), nil
}
