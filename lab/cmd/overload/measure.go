package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

// settings says which loads to measure, and for how long.
type settings struct {
	controls []string // control modes: off, enforce, dry_run
	costs    time.Duration
	capacity time.Duration
	warm     time.Duration // before each load, at half capacity
	lasts    time.Duration // each load
	after    time.Duration // after the greatest load, at half capacity
	loads    []float64     // times the capacity of the mix
	tokens   []float64     // times the capacity of tokens
	families int           // refresh tokens
	attempts int           // maximum number of measurements of a load, if other programs run during them
	quiet    time.Duration // maximum wait for other programs to end before each load

	// For the test: any processors, and a maximum of tokens a second.
	anyCore   bool
	maxTokens float64
}

// full is what `make bench-overload` measures.
func full() settings {
	return settings{
		costs: 2 * time.Second, capacity: 4 * time.Second,
		warm: time.Second, lasts: 6 * time.Second, after: 5 * time.Second,
		loads: []float64{0.5, 1, 2, 4, 8, 12}, tokens: []float64{0.5, 1, 1.5, 2, 3},
		families: 6000, attempts: 2, quiet: 20 * time.Second, maxTokens: math.Inf(1),
	}
}

const (
	// patience is how long a caller waits after its request was due before it hangs up.
	patience = time.Second
	// connections is the maximum number of requests under way.
	connections = 8192
)

// addresses are the source addresses of requests. There are several, to make sign-ins come from many
// people.
func addresses() (all []string) {
	for n := range 200 {
		all = append(all, fmt.Sprintf("127.0.1.%d", n+1))
	}
	return all
}

// measurement is a measurement in progress.
type measurement struct {
	settings
	world  *world
	report *report
	half   figures // of refreshes and codes at the least load of the mix, which recovery is compared with
}

// measure measures all of it.
func measure(ctx context.Context, s settings) (_ *report, err error) {
	began := time.Now()
	m := &measurement{settings: s, report: &report{}}
	if m.world, err = newWorld(ctx, s); err != nil {
		return nil, err
	}
	defer func() { err = m.world.end(err) }()
	if err := m.basics(ctx); err != nil {
		return nil, err
	}
	for _, control := range s.controls {
		if err := m.under(ctx, control); err != nil {
			return nil, fmt.Errorf("control %s: %w", control, err)
		}
	}
	m.report.machine = process.Machine()
	m.report.date = began.Format(time.DateOnly)
	m.report.took = time.Since(began).Round(time.Second)
	return m.report, nil
}

func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// sent is the result of a load.
type sent struct {
	*load.Result
	usage []process.Usage
}

// send sends a load of a mix, and samples the server's usage during it. The stream has its phases, or how many requests
// are always under way.
func (m *measurement) send(ctx context.Context, mix mix, seed uint64, stream load.Stream) (*sent, error) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the generator has its processor for itself
	sampling, cancel := context.WithCancel(ctx)
	defer cancel()
	sampled := make(chan []process.Usage)
	go func() { sampled <- process.Sample(sampling, m.world.server.PID(), process.ServerCore, time.Second/10) }()
	source := newMixed(m.world, mix, seed)
	stream.Source, stream.From = source, addresses()
	if stream.Closed == 0 {
		stream.Patience, stream.Connections = patience, connections
	}
	results, err := load.Run(ctx, load.Options{Address: m.world.server.Address, Core: m.world.core, Seed: seed}, stream)
	cancel()
	used := <-sampled
	if err != nil {
		return nil, err
	}
	return &sent{results[0], used}, source.lacked
}

// saturate sends a mix. That many requests are always under way.
func (m *measurement) saturate(ctx context.Context, mix mix, atOnce int, lasts time.Duration) (*sent, error) {
	m.settle(ctx)
	return m.send(ctx, mix, 1, load.Stream{Phases: load.Steady(0, lasts), Closed: atOnce})
}

// settle waits until neither the server nor other programs have work left, for at most m.quiet.
func (m *measurement) settle(ctx context.Context) {
	const tick, quiet = time.Second / 2, 0.1
	for began := time.Now(); time.Since(began) < m.quiet; {
		before, err := process.Busy(process.AnyCore)
		if servers.Pause(ctx, tick) != nil {
			return
		}
		after, also := process.Busy(process.AnyCore)
		if err != nil || also != nil || (after-before).Seconds() < quiet*tick.Seconds() {
			return
		}
	}
}

// basics measures costs and capacities, without control.
func (m *measurement) basics(ctx context.Context) error {
	seconds := (m.costs + 2*m.capacity).Seconds() * float64(m.attempts)
	if err := m.world.serve(ctx, "off", int(5000*seconds), m.families); err != nil {
		return err
	}
	for _, c := range []class{refresh, code, clientOnly, signIn, wrongPassword, wrongSecret, denied} {
		cost, err := best(m.attempts, func() (cost, float64, error) { return m.cost(ctx, c) })
		if err != nil {
			return fmt.Errorf("cost of %s: %w", c, err)
		}
		note("cost of %s: %.0f µs in the server, %.0f µs hashing", c, cost.server, cost.hashing)
		m.report.costs = append(m.report.costs, cost)
	}
	of := func(x mix) (float64, error) {
		return best(m.attempts, func() (float64, float64, error) { return m.capacityOf(ctx, x) })
	}
	var err error
	if m.report.capacity, err = of(everything); err != nil {
		return err
	}
	if m.report.tokenCapacity, err = of(tokensOnly); err != nil {
		return err
	}
	m.report.tokenCapacity = min(m.report.tokenCapacity, m.maxTokens)
	note("capacity: %.0f/s of the mix, %.0f/s of tokens", m.report.capacity, m.report.tokenCapacity)
	return nil
}

// cost measures the processor time of a request of class c, sent without pauses and without other
// classes. others is the share of the processor that other programs used.
func (m *measurement) cost(ctx context.Context, c class) (_ cost, others float64, err error) {
	const atOnce = 4 // of one processor: some wait, and hashes are never waited for
	s, err := m.saturate(ctx, only(c), atOnce, m.costs)
	if err != nil {
		return cost{}, 0, err
	}
	for _, r := range s.Records {
		switch {
		case r.Status == c.wanted() || r.Status == load.HungUp: // those under way at the end
		case c == denied && r.Status == 200: // until it is over its limit
		case r.Status == 503 && (c == signIn || c == wrongPassword): // another program has the processor
		default:
			return cost{}, 0, fmt.Errorf("an answer is %d", r.Status)
		}
	}
	used := process.Between(s.usage, s.Began, s.Began.Add(m.costs))
	micros := 1e6 / (float64(len(s.Records)) / m.costs.Seconds())
	return cost{c, used.Process * micros, used.Children * micros, len(s.Records)}, used.Others + s.Stalled(0, m.costs), nil
}

// capacityOf returns how many requests of a mix the server answers a second while some are always under
// way. others is the same as for cost.
func (m *measurement) capacityOf(ctx context.Context, x mix) (rate, others float64, err error) {
	const atOnce = 16
	s, err := m.saturate(ctx, x, atOnce, m.capacity)
	if err != nil {
		return 0, 0, err
	}
	n := 0
	for _, r := range s.Records {
		switch {
		case r.Status == load.HungUp: // under way at the end
		case r.Status == 503 && class(r.Class) == signIn: // it would wait too long
		case r.Status != class(r.Class).wanted():
			return 0, 0, fmt.Errorf("capacity: %s is answered by %d", class(r.Class), r.Status)
		case r.Done < m.capacity:
			n++
		}
	}
	used := process.Between(s.usage, s.Began, s.Began.Add(m.capacity))
	return float64(n) / m.capacity.Seconds(), used.Others + s.Stalled(0, m.capacity), nil
}

// codesFor returns how many codes all loads together need.
func (m *measurement) codesFor() int {
	n, warm, lasts := 0.0, m.warm.Seconds(), m.lasts.Seconds()
	for _, load := range m.loads {
		n += m.report.capacity * everything[code] * (load*lasts + warm)
	}
	n += m.report.capacity * m.after.Seconds() * everything[code]
	for _, load := range m.tokens {
		n += m.report.tokenCapacity * tokensOnly[code] * (load*lasts + warm)
	}
	const margin = 1.2 // the times are random
	return int(margin*n)*m.attempts + spare
}

// under measures all series under a control.
func (m *measurement) under(ctx context.Context, control string) error {
	if err := m.world.serve(ctx, control, m.codesFor(), m.families); err != nil {
		return err
	}
	if control == "off" {
		control = none
	}
	for _, load := range m.loads {
		after := time.Duration(0)
		if load == slices.Max(m.loads) {
			after = m.after
		}
		if err := m.row(ctx, row{series: mixSeries, control: control, load: load}, after); err != nil {
			return err
		}
	}
	for _, load := range m.tokens {
		if err := m.row(ctx, row{series: tokenSeries, control: control, load: load}, 0); err != nil {
			return err
		}
	}
	return nil
}

// disturbed is the share of either processor that other programs may use.
const disturbed = 0.05

// best calls measure, and repeats it, up to attempts times, if other programs used the processors. The
// second result of measure is their share. It returns the result with the lowest share.
func best[T any](attempts int, measure func() (T, float64, error)) (found T, err error) {
	least := math.Inf(1)
	for range attempts {
		v, others, err := measure()
		if err != nil {
			return found, err
		}
		if others < least {
			found, least = v, others
		}
		if least < disturbed {
			break
		}
	}
	return found, nil
}

// measured is a row with the full result of its load.
type measured struct {
	row
	sent *sent
}

// row measures a load, and what follows it.
func (m *measurement) row(ctx context.Context, r row, after time.Duration) error {
	found, err := best(m.attempts, func() (measured, float64, error) {
		s, err := m.attempt(ctx, &r, after)
		if err != nil {
			return measured{}, 0, err
		}
		stalled := s.Stalled(m.warm, m.warm+m.lasts)
		note("%s, %s, %.1f × capacity, %.0f/s: %.1f %% of refreshes and codes, p99 %.1f ms, goodput %.0f/s, other programs %.0f %%, stalled %.1f %%",
			r.series, r.control, r.load, r.offered, 100*r.tokens.success(), r.tokens.p(99), r.goodput, 100*r.others, 100*stalled)
		return measured{r, s}, r.others + stalled, nil
	})
	if err != nil {
		return fmt.Errorf("%s at %.1f times the capacity: %w", r.series, r.load, err)
	}
	m.report.rows = append(m.report.rows, found.row)
	if r.series == mixSeries && r.load == slices.Min(m.loads) {
		m.half = found.tokens
	}
	if after > 0 {
		bound := time.Duration(2 * m.half.p(99) * float64(time.Millisecond))
		end := m.warm + m.lasts
		took, ok := recovered(found.sent.Result, end, end+after, bound, refresh, code)
		m.report.recoveries = append(m.report.recoveries, recovery{r.control, r.load, took.Seconds(), ok})
	}
	return nil
}

// attempt sends the load of a row, and fills the row.
func (m *measurement) attempt(ctx context.Context, r *row, after time.Duration) (*sent, error) {
	m.settle(ctx)
	mix, capacity := everything, m.report.capacity
	if r.series == tokenSeries {
		mix, capacity = tokensOnly, m.report.tokenCapacity
	}
	rate := r.load * capacity
	r.offered = rate
	phases := []load.Phase{{For: m.warm, Rate: capacity / 2}, {For: m.lasts, Rate: rate}}
	if after > 0 {
		phases = append(phases, load.Phase{For: after, Rate: capacity / 2})
	}
	s, err := m.send(ctx, mix, uint64(10*r.load), load.Stream{Phases: phases})
	if err == nil {
		m.fill(r, s)
	}
	return s, err
}

// fill computes the figures of a row.
func (m *measurement) fill(r *row, s *sent) {
	from, to := m.warm, m.warm+m.lasts
	r.classes = map[class]figures{}
	r.goodput, r.useful = 0, 0
	for _, c := range []class{refresh, code, clientOnly, signIn} {
		f := figure(s.Result, from, to, c)
		if f.due()+f.late == 0 {
			continue
		}
		r.classes[c] = f
		// Assume the same success rate for the requests that were left out.
		ok := f.success() * float64(f.due()+f.late) / m.lasts.Seconds()
		if !math.IsNaN(ok) {
			r.goodput += ok
			r.useful += ok * m.report.costOf(c) / 1e6
		}
	}
	r.tokens = figure(s.Result, from, to, refresh, code)
	r.all = figure(s.Result, from, to, refresh, code, clientOnly, signIn)
	used := process.Between(s.usage, s.Began.Add(from), s.Began.Add(to))
	r.serverShare, r.hashingShare, r.others = used.Process, used.Children, used.Others
	r.memoryPeak = 0
	for _, u := range s.usage {
		r.memoryPeak = max(r.memoryPeak, u.Memory+u.ChildMemory)
	}
}
