package limiter_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestReuseWhileTheyWait: when a client starts to get its last token again, its waiting requests
// are denied so that they get it.
func TestReuseWhileTheyWait(t *testing.T) {
	inWorld(t, 2, 10*time.Second, 4, func(w *world) {
		w.change(func(s *ratelimit.Settings) {
			s.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("per-minute", 24, time.Minute)}
		})
		w.askAll(24)
		pass(55 * time.Second)
		all := w.askAll(2)
		w.change(func(s *ratelimit.Settings) {
			s.Clients = map[string]ratelimit.Policy{"shop": {OverLimit: ratelimit.OverLimitReuse}}
		})
		pass(10 * time.Second)
		check.Equal(t, "requests", texts(all), []string{"denied 400ms", "denied 400ms"})
	})
}

// TestModeOfAQueue: if the mode has changed since the latest denial, a new request gets a denial of
// its own mode.
func TestModeOfAQueue(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 1, func(w *world) {
		pass(30 * time.Millisecond)
		w.askAll(3)
		w.change(func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun })
		check.Equal(t, "one without a place", w.ask(shop, 3).Outcome, ratelimit.WouldDeny)
		pass(3 * time.Second)
	})
}

// TestGiveBackOfANewcomer: a new request that was decided because of a mode change can be given
// back too.
func TestGiveBackOfANewcomer(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		w.change(func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun })
		w.askAll(3)
		w.change(func(s *ratelimit.Settings) { s.Mode = ratelimit.Enforce })
		w.ahead.Store(int64(2 * time.Second)) // the timer of the queue is late
		newcomers := w.askAll(2)
		check.Equal(t, "outcomes", texts(newcomers), []string{"allowed 0s", "allowed 0s"})
		w.queues.GiveBack(shop, &newcomers[0].Admission)
		check.Equal(t, "one more", w.ask(shop, 5).Outcome, ratelimit.Allowed)
		w.ahead.Store(0)
		pass(3 * time.Second)
	})
}
