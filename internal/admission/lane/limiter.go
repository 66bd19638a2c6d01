package lane

import (
	"sync/atomic"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

// limiter gives out permits. It never waits.
type limiter interface {
	TryAcquirePermit() (adaptivelimiter.Permit, bool)
	Limit() int
	Inflight() int
}

// baselineWindows is the number of windows in the baseline of the latency. Each window is a second
// or two calls long. With the library's default of 10, a limit of 40 falls to 30 only when calls
// take 40 times as long, and recovers within a minute although they still do. With 60 windows it
// falls to 14 and recovers after some minutes.
const baselineWindows = 60

// newAdaptive returns a limiter with a limit that starts at most and follows the latency. It does
// not follow the number of concurrent calls, so the limit is still high after a quiet night.
func newAdaptive(least, most int) limiter {
	return adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(most)).
		WithBaselineWindow(baselineWindows).
		WithMaxLimitFunc(func(int) float64 { return float64(most) }).
		Build()
}

// fixed is a limiter with a constant limit. It is also its own permit.
type fixed struct {
	limit    int64
	inFlight atomic.Int64
}

// TryAcquirePermit implements limiter.
func (f *fixed) TryAcquirePermit() (adaptivelimiter.Permit, bool) {
	if f.inFlight.Add(1) > f.limit {
		f.inFlight.Add(-1)
		return nil, false
	}
	return f, true
}

// Limit implements limiter.
func (f *fixed) Limit() int { return int(f.limit) }

// Inflight implements limiter.
func (f *fixed) Inflight() int { return int(f.inFlight.Load()) }

// Record implements [adaptivelimiter.Permit].
func (f *fixed) Record() { f.inFlight.Add(-1) }

// Drop implements [adaptivelimiter.Permit].
func (f *fixed) Drop() { f.inFlight.Add(-1) }
