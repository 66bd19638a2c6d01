package lane

import (
	"sync/atomic"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
)

// limiter gives permits, and never waits.
type limiter interface {
	TryAcquirePermit() (adaptivelimiter.Permit, bool)
	Limit() int
	Inflight() int
}

// baselineWindows is how many windows, each of a second or of two calls, the latency is compared with. With the
// default of the library, 10, a limit of 40 falls to 30 only when calls take 40 times as long, and is back within a
// minute although they still do; with 60 it falls to 14, and is back after some minutes.
const baselineWindows = 60

// newAdaptive returns a limiter whose limit begins at most and follows the latency. It does not follow the number of
// calls at once: after a quiet night the limit is as high as before.
func newAdaptive(least, most int) limiter {
	return adaptivelimiter.NewBuilder[any]().
		WithLimits(uint(least), uint(most), uint(most)).
		WithBaselineWindow(baselineWindows).
		WithMaxLimitFunc(func(int) float64 { return float64(most) }).
		Build()
}

// fixed is a limiter whose limit is always the same, and a permit of it.
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
