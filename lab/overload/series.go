package overload

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/lab/openloop"
)

// Settings says which loads to measure, and for how long.
type Settings struct {
	Controls []string // control modes to measure: off, enforce, dry_run; modes that the server does not know are skipped
	Costs    time.Duration
	Capacity time.Duration
	Warm     time.Duration // before each load, at half capacity
	Lasts    time.Duration // each load
	After    time.Duration // after the greatest load, at half capacity
	Loads    []float64     // times the capacity of the mix
	Tokens   []float64     // times the capacity of tokens
	Greedy   []float64     // times the capacity of the mix, with and without the client over its limit
	Families int           // refresh tokens
	Attempts int           // maximum number of measurements of a load, if other programs run during them
	Quiet    time.Duration // maximum wait for other programs to end before each load
	// Capacities are the known capacities of the mix and of tokens. If set, costs and capacities are not
	// measured.
	Capacities [2]float64
	Logf       func(format string, args ...any)
	maxTokens  float64 // a second, at most, for the smoke test
}

// Full is what `make bench-overload` measures.
func Full() Settings {
	return Settings{
		Controls: []string{"off", "enforce"}, Costs: 2 * time.Second, Capacity: 4 * time.Second,
		Warm: time.Second, Lasts: 6 * time.Second, After: 5 * time.Second,
		Loads: []float64{0.5, 1, 2, 4, 8, 12}, Tokens: []float64{0.5, 1, 1.5, 2, 3}, Greedy: []float64{0.5, 12},
		Families: 6000, Attempts: 2, Quiet: 20 * time.Second,
	}
}

// Short is enough to see that all of it works.
func Short() Settings {
	const short = 500 * time.Millisecond
	return Settings{
		Controls: []string{"off", "enforce"}, Costs: short, Capacity: time.Second, Warm: short / 5, Lasts: short, After: short,
		Loads: []float64{0.5, 2}, Tokens: []float64{0.5}, Greedy: []float64{0.5}, Families: 500, Attempts: 1, Quiet: time.Second / 2, maxTokens: 1000,
	}
}

// none is the control of a server without one.
const none = "none"

// Measure measures all of it.
func Measure(tb testing.TB, s Settings) (*Report, error) {
	tb.Helper()
	if s.Logf == nil {
		s.Logf = tb.Logf
	}
	m := &measurement{Settings: s, world: newWorld(tb), report: &Report{}}
	defer m.world.stop()
	m.world.quiet = s.Quiet
	began := time.Now()
	if err := m.basics(); err != nil {
		return nil, err
	}
	for _, control := range s.Controls {
		if control != "off" && !m.world.knowsControl() {
			s.Logf("the server does not know overload.mode: %s is left out", control)
			continue
		}
		if err := m.under(control); err != nil {
			return nil, fmt.Errorf("control %s: %w", control, err)
		}
	}
	m.report.Machine = machineName()
	m.report.Date = began.Format(time.DateOnly)
	m.report.Took = time.Since(began).Round(time.Second).String()
	return m.report, nil
}

// machineName describes the machine: processors, kernel and Go version.
func machineName() string {
	model := runtime.GOARCH
	text, _ := os.ReadFile("/proc/cpuinfo")
	if _, rest, found := strings.Cut(string(text), "model name\t: "); found {
		model, _, _ = strings.Cut(rest, "\n")
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	processors := strings.Count(string(text), "model name\t: ") // also those that this process may not use
	return fmt.Sprintf("%d × %s, Linux %s, %s", processors, model, version, runtime.Version())
}

// measurement is a measurement in progress.
type measurement struct {
	Settings
	world  *world
	report *Report
	half   Figures // of refreshes and codes at the least load of the mix, which recovery is compared with
}

// off returns the mode for no control. It is empty if the server has no overload control, because such
// a server does not know the setting.
func (m *measurement) off() string {
	if m.world.knowsControl() {
		return "off"
	}
	return ""
}

// basics measures costs and capacities, without control.
func (m *measurement) basics() error {
	w, r := m.world, m.report
	if m.Capacities[0] > 0 {
		r.Capacity, r.TokenCapacity = m.Capacities[0], m.Capacities[1]
		return nil
	}
	seconds := (m.Costs + 2*m.Capacity).Seconds() * float64(m.Attempts)
	if err := w.serve(m.off(), int(5000*seconds), m.Families); err != nil {
		return err
	}
	for _, c := range []Class{Refresh, Code, Client, SignIn, WrongPassword, WrongSecret, Denied} {
		cost, err := best(m.Attempts, func() (Cost, float64, error) { return w.cost(c, m.Costs) })
		if err != nil {
			return err
		}
		m.Logf("cost of %s: %.0f µs in the server, %.0f µs hashing", c, cost.Server, cost.Hashing)
		r.Costs = append(r.Costs, cost)
	}
	var err error
	of := func(mix Mix) func() (float64, float64, error) {
		return func() (float64, float64, error) { return w.capacity(mix, m.Capacity) }
	}
	if r.Capacity, err = best(m.Attempts, of(everything)); err != nil {
		return err
	}
	if r.TokenCapacity, err = best(m.Attempts, of(tokensOnly)); err != nil {
		return err
	}
	if m.maxTokens > 0 {
		r.TokenCapacity = min(r.TokenCapacity, m.maxTokens)
	}
	m.Logf("capacity: %.0f/s of the mix, %.0f/s of tokens", r.Capacity, r.TokenCapacity)
	return nil
}

// codesFor returns how many codes all loads together need.
func (m *measurement) codesFor() int {
	n, warm, lasts := 0.0, m.Warm.Seconds(), m.Lasts.Seconds()
	for _, load := range m.Loads {
		n += m.report.Capacity * everything[Code] * (load*lasts + warm)
	}
	for _, load := range m.Greedy {
		n += 2 * m.report.Capacity * everything[Code] * (load*lasts + warm)
	}
	n += m.report.Capacity * m.After.Seconds() * everything[Code]
	for _, load := range m.Tokens {
		n += m.report.TokenCapacity * tokensOnly[Code] * (load*lasts + warm)
	}
	const margin = 1.2 // the times are random
	return int(margin*n)*m.Attempts + spare
}

// under measures all series under a control.
func (m *measurement) under(control string) error {
	mode, name := control, control
	if control == "off" {
		mode, name = m.off(), none
	}
	if err := m.world.serve(mode, m.codesFor(), m.Families); err != nil {
		return err
	}
	if m.Capacities[0] == 0 {
		cost, ok, err := m.world.refusedCost(name, m.Costs)
		if err != nil {
			return err
		}
		m.Logf("refused: %+v, most of them %v", cost, ok)
		if ok {
			m.report.Costs = append(m.report.Costs, cost)
		}
	}
	for _, load := range m.Loads {
		after := time.Duration(0)
		if load == slices.Max(m.Loads) {
			after = m.After
		}
		if err := m.row(Row{Series: MixSeries, Control: name, Load: load}, after); err != nil {
			return err
		}
	}
	for _, load := range m.Greedy {
		for _, greedy := range []bool{false, true} {
			if err := m.row(Row{Series: GreedySeries, Control: name, Load: load, Greedy: greedy}, 0); err != nil {
				return err
			}
		}
	}
	for _, load := range m.Tokens {
		if err := m.row(Row{Series: TokenSeries, Control: name, Load: load}, 0); err != nil {
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
	Row
	sent *sent
}

// row measures a load, and what follows it.
func (m *measurement) row(r Row, after time.Duration) error {
	found, err := best(m.Attempts, func() (measured, float64, error) {
		row, s, err := m.attempt(r, after)
		if err == nil {
			m.Logf("%s", row.line())
		}
		return measured{row, s}, row.Others + row.Stalled, err
	})
	if err != nil {
		return fmt.Errorf("%s at %.1f times the capacity: %w", r.Series, r.Load, err)
	}
	m.report.Rows = append(m.report.Rows, found.Row)
	if r.Series == MixSeries && r.Load == slices.Min(m.Loads) {
		m.half = found.Tokens
	}
	if after > 0 {
		m.recover(&found.Row, found.sent, after)
	}
	return nil
}

func (m *measurement) attempt(r Row, after time.Duration) (Row, *sent, error) {
	m.world.settle()
	mix, capacity := everything, m.report.Capacity
	if r.Series == TokenSeries {
		mix, capacity = tokensOnly, m.report.TokenCapacity
	}
	rate := r.Load * capacity
	r.Offered = rate
	if r.Greedy {
		mix, rate = mix.beside(rate, Greedy, overLimit*greedyLimit)
	}
	phases := []openloop.Phase{{For: m.Warm, Rate: capacity / 2}, {For: m.Lasts, Rate: rate}}
	if after > 0 {
		phases = append(phases, openloop.Phase{For: after, Rate: capacity / 2})
	}
	s, err := m.world.send(load{mix: mix, phases: phases, seed: uint64(10 * r.Load)})
	if err != nil {
		return r, nil, err
	}
	m.fill(&r, s)
	return r, s, nil
}

// fill computes the figures of a row.
func (m *measurement) fill(r *Row, s *sent) {
	from, to := m.Warm, m.Warm+m.Lasts
	r.Seconds = m.Lasts.Seconds()
	r.Classes = map[string]Figures{}
	for _, c := range []Class{Refresh, Code, Client, SignIn, Greedy} {
		f := figure(s.Result, from, to, c)
		if f.Due+f.Late == 0 {
			continue
		}
		r.Classes[c.String()] = f
		// Assume the same success rate for the requests that were left out.
		ok := f.Success() * float64(f.Due+f.Late) / r.Seconds
		if c != Greedy && !math.IsNaN(ok) {
			r.Goodput += ok
			r.Useful += ok * m.costOf(c) / 1e6
		}
	}
	r.Tokens = figure(s.Result, from, to, Refresh, Code)
	r.All = figure(s.Result, from, to, Refresh, Code, Client, SignIn)
	start, end := s.Began.Add(from), s.Began.Add(to)
	used := between(s.usage, start, end)
	r.ServerShare, r.HashingShare, r.Waited, r.Others, r.Stolen = used.server, used.children, used.waited, used.others, used.stolen
	r.InServer, r.InChildren = s.hashed("server"), s.hashed("process")
	if n := len(s.usage); n > 0 {
		r.MemoryBefore, r.MemoryAfter = s.usage[0].memory, s.usage[n-1].memory
	}
	r.MemoryPeak = peak(s.usage, s.Began, s.Began.Add(time.Hour))
	r.Stalled = s.stalled(from, to)
	r.Connections = s.Opened
}

func (m *measurement) costOf(c Class) float64 {
	for _, cost := range m.report.Costs {
		if cost.Class == c.String() {
			return cost.Server + cost.Hashing
		}
	}
	return 0
}

// recover finds how soon after a load the server was as quick as at half load.
func (m *measurement) recover(r *Row, s *sent, after time.Duration) {
	bound := 2 * m.half.P99
	end := m.Warm + m.Lasts
	took, ok := recovery(s.Result, end, end+after, time.Duration(bound*float64(time.Millisecond)), Refresh, Code)
	found := Recovery{Control: r.Control, Load: r.Load, Bound: bound, Seconds: took.Seconds(), OK: ok}
	m.report.Recoveries = append(m.report.Recoveries, found)
	m.Logf("recovery: %+v", found)
}

// line returns the row as a line for the log.
func (r *Row) line() string {
	text := fmt.Sprintf("%s, %s, %4.1f × capacity, %.0f/s", r.Series, r.Control, r.Load, r.Offered)
	if r.Greedy {
		text += ", beside one over its limit"
	}
	for _, c := range []Class{Refresh, Code, Client, SignIn, Greedy} {
		if f, ok := r.Classes[c.String()]; ok {
			text += fmt.Sprintf("\n    %-20s %6d due %5.1f %% ok, 503 %d, 429 %d, hung up %d, other %d, p50 %.1f ms, p99 %.1f ms, late %d",
				c, f.Due, 100*f.Success(), f.Refused, f.Limited, f.HungUp, f.Other, f.P50, f.P99, f.Late)
		}
	}
	const mega = 1 << 20
	return text + fmt.Sprintf("\n    goodput %.0f/s, useful %.0f %%, server %.0f %%, hashing %.0f %%, hashed in the server %.0f, in children %.0f, "+
		"waited %.0f %%, others %.0f %%, stolen %.1f %%, memory %d, %d, %d MiB, stalled %.1f %%, connections %d", r.Goodput, 100*r.Useful, 100*r.ServerShare, 100*r.HashingShare, r.InServer, r.InChildren,
		100*r.Waited, 100*r.Others, 100*r.Stolen, r.MemoryBefore/mega, r.MemoryPeak/mega, r.MemoryAfter/mega, 100*r.Stalled, r.Connections)
}
