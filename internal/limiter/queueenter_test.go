package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// oneTimer is a time that goes on to the only timer there is.
type oneTimer struct {
	now, at time.Time
	f       func()
}

func (o *oneTimer) after(d time.Duration, f func()) limiter.Timer {
	o.f = f
	o.Reset(d)
	return o
}

func (o *oneTimer) Reset(d time.Duration) bool {
	o.at = o.now.Add(d)
	return true
}

func (o *oneTimer) Stop() bool {
	o.at = time.Time{}
	return true
}

func (o *oneTimer) fire() {
	o.now, o.at = o.at, time.Time{}
	o.f()
}

// TestEnter: the queue that the package documentation works through, on timers of another time and with no goroutine
// that waits.
func TestEnter(t *testing.T) {
	s := ratelimit.DefaultSettings()
	l := ratelimit.NewLimit("per-second", 2, time.Second)
	l.Frames = 10
	longest := ratelimit.Duration(time.Second)
	s.Default.Client, s.Default.MaxWait = []ratelimit.Limit{l}, &longest
	p, err := ratelimit.Compile(s)
	check.OK(t, err)
	began := time.Date(2026, 3, 1, 12, 0, 0, 30e6, time.UTC)
	clock := &oneTimer{now: began}
	queues := limiter.NewQueuesOn(counting.NewCounters(0), func() time.Time { return clock.now }, clock.after)
	var got []string
	for i := range 4 {
		decided := 0
		admission, end := queues.Enter(t.Context(), shop, func() *ratelimit.Effective { return p.For("shop") }, func() { decided++ })
		if end != nil {
			for range 2 { // it looks for changes
				clock.fire()
				check.Equal(t, "decided before its turn", decided, 0)
			}
			clock.fire()
			check.Equal(t, "decided at its turn", decided, 1)
			admission, clock.now = end(t.Context()), began
			check.Equal(t, "held", admission.Held, true)
		}
		got = append(got, fmt.Sprint(i, " ", admission.Outcome, " ", admission.Waited, admission.RetryAfter))
	}
	check.Equal(t, "turns", got, []string{"0 allowed 0s 0s", "1 allowed 0s 0s", "2 delayed 971ms 0s", "3 denied 0s 1.021s"})
}
