package counting

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"oauth-server/internal/ratelimit"
)

// TestForecast: each request passes at the predicted millisecond, and not one millisecond earlier.
func TestForecast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		c, k, eff := single(limits...)
		now := int64(epoch)
		for range rapid.IntRange(1, 60).Draw(t, "requests before") {
			now += drawStep(t, limits[0].Window) / 10
			c.Take(at(now), k, eff, 1)
		}
		f := c.Forecast(at(now), k, eff)
		for i := range rapid.IntRange(1, 60).Draw(t, "requests that wait") {
			next := f.Next().UnixMilli()
			f.Admit()
			if next > now {
				if d := c.Take(at(next-1), k, eff, 1); d.Outcome == ratelimit.Allowed {
					t.Fatalf("request %d passed before %d ms, its time", i, next-now)
				}
			}
			if d := c.Take(at(next), k, eff, 1); d.Outcome != ratelimit.Allowed {
				t.Fatalf("request %d did not pass after %d ms, but after %v", i, next-now, d.RetryAfter)
			}
			now = next
		}
	})
}

// TestForecastOfUnusedPermits: waiting requests use them, even if they pass in a later frame.
func TestForecastOfUnusedPermits(t *testing.T) {
	p := leaseFrom(t, strictly(10, time.Minute))
	p.others(59_940, 6) // the oldest frame that is partly inside the window
	for range 2 {       // after a conflict
		p.take(4, ratelimit.Denied)
		p.exchange()
	}
	mustEqual(t, "held", int64(4), p.held())
	f := p.c.Forecast(p.now, p.k, p.eff)
	for range 4 {
		mustEqual(t, "with a permit", p.now.UnixMilli(), f.Next().UnixMilli())
		f.Admit()
	}
	later := f.Next()
	for range 6 {
		mustEqual(t, "when the oldest frame has left, after", later.Sub(p.now), f.Next().Sub(p.now))
		f.Admit()
	}
	mustEqual(t, "one more is behind them", true, f.Next().After(later))
}
