package limiter_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// denials returns a function that sends a request over its limit that would have to wait too long.
func denials(tb testing.TB, wait time.Duration) (ask func()) {
	tb.Helper()
	s, longest := ratelimit.DefaultSettings(), ratelimit.Duration(wait)
	now := time.Unix(1_700_000_010, 0) // half a minute before the frame ends; after that, room returns quickly
	s.Default.MaxWait = &longest
	p, err := ratelimit.Compile(s)
	check.OK(tb, err)
	l := limiter.NewQueues(counting.NewCounters(0), func() time.Time { return now })
	policy := func() *ratelimit.Effective { return p.For("shop") }
	for range s.Default.Client[0].Requests {
		l.Take(tb.Context(), shop, policy)
	}
	return func() {
		if t := l.Take(tb.Context(), shop, policy); t.Outcome != ratelimit.Denied {
			tb.Fatal(t.Outcome)
		}
	}
}

// TestDeniedForALateTurn: it costs as much as a denial without max_wait, and no forecast.
func TestDeniedForALateTurn(t *testing.T) {
	check.Equal(t, "allocations", testing.AllocsPerRun(100, denials(t, time.Second)), testing.AllocsPerRun(100, denials(t, 0)))
}

func BenchmarkDenied(b *testing.B) {
	for _, wait := range []time.Duration{0, time.Second} {
		b.Run("max_wait="+wait.String(), func(b *testing.B) {
			b.ReportAllocs()
			ask := denials(b, wait)
			for b.Loop() {
				ask()
			}
		})
	}
}
