package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// inTotal runs a test with a total of 5 in ten frames of a window, and a max_wait of 2 seconds.
func inTotal(t *testing.T, requests int64, mode ratelimit.Mode, window time.Duration, test func(w *world)) {
	t.Helper()
	inWorld(t, requests, 2*time.Second, 10, func(w *world) {
		total := ratelimit.NewLimit("all-users", 5, window)
		total.Frames = 10
		w.change(func(s *ratelimit.Settings) {
			s.Mode = mode
			s.Default.Total = []ratelimit.Limit{total}
		})
		pass(30 * time.Millisecond)
		test(w)
	})
}

func user(i int) ratelimit.Key { return ratelimit.Key{ClientID: "shop", Username: fmt.Sprint("u", i)} }

// count returns how many requests had each combination of outcome and wait.
func count(all []*asked) map[string]int {
	got := map[string]int{}
	for _, a := range all {
		got[a.String()]++
	}
	return got
}

// TestNobodyWaitsForATotal: a request over the total is denied at once, with the time at which the
// total has room. In dry-run this is the prediction.
func TestNobodyWaitsForATotal(t *testing.T) {
	for mode, denied := range map[ratelimit.Mode]string{ratelimit.Enforce: "denied 0s", ratelimit.DryRun: "would_deny 0s"} {
		t.Run(denied, func(t *testing.T) {
			inTotal(t, 5, mode, time.Second, func(w *world) {
				var all []*asked
				for i := range 55 {
					all = append(all, w.ask(user(i), i))
				}
				check.Equal(t, "requests", count(all), map[string]int{"allowed 0s": 5, denied: 50})
				check.Equal(t, "RetryAfter", all[54].RetryAfter, 971*time.Millisecond)
				d, denies := w.queues.Denies(user(60), w.policy.Load())
				check.Equal(t, "denied before", denies, mode == ratelimit.Enforce)
				if denies {
					check.Equal(t, "RetryAfter of that", d.RetryAfter, 971*time.Millisecond)
				}
			})
		})
	}
}

// TestTotalIsFullAtTheTurn: if a request waits for its own limit and then finds the total full, it
// is denied, and so are the requests behind it.
func TestTotalIsFullAtTheTurn(t *testing.T) {
	inTotal(t, 2, ratelimit.Enforce, 50*time.Second, func(w *world) {
		var all []*asked
		for i, u := range []int{1, 1, 2, 3, 1, 1} {
			all = append(all, w.ask(user(u), i))
		}
		check.Equal(t, "waiting for a limit of their own", w.queues.Waiting(), 2)
		pass(900 * time.Millisecond) // their queue has looked for changes
		w.ask(user(4), 6)
		pass(2 * time.Second)
		check.Equal(t, "requests", texts(all[4:]), []string{"denied 971ms", "denied 971ms"})
		check.Equal(t, "RetryAfter", all[5].RetryAfter, 49*time.Second)
	})
}
