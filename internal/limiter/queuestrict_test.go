package limiter_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// TestStoreThatBringsNoPermits: waiting requests are denied when their max_wait is over and not
// before, for any lease_wait. The last two are denied earlier, once they can no longer pass: the
// two before them would use the room of one more second.
func TestStoreThatBringsNoPermits(t *testing.T) {
	for leaseWait, last := range map[time.Duration]string{50 * time.Millisecond: "denied 2.25s", 5 * time.Second: "denied 2.4s"} {
		t.Run(leaseWait.String(), func(t *testing.T) {
			inWorld(t, 2, 3*time.Second, 10, func(w *world) {
				w.change(func(s *ratelimit.Settings) {
					l := ratelimit.NewLimit("per-second", 2, time.Second)
					l.Frames, l.Strict, l.OnOutage, l.LeaseWait = 10, true, ratelimit.Deny, leaseWait
					s.Default.Client = []ratelimit.Limit{l, ratelimit.NewLimit("per-minute", 1000, time.Minute)}
				})
				pass(30 * time.Millisecond)
				all := w.askAll(6)
				// Attached only now, so that the first two were admitted by this process alone.
				y := w.counters.Sync(counting.SyncOptions{Interval: time.Second, MaxBackoff: time.Second})
				_ = w.queues.Waiting() // takes the lock, so the timers of the queues see the syncer from here on
				for range 30 {
					y.SetUncertainty(time.Now(), 3*time.Millisecond)
					pass(100 * time.Millisecond)
				}
				pass(time.Second)
				check.Equal(t, "requests", texts(all[2:]), []string{"denied 3s", "denied 3s", last, last})
			})
		})
	}
}
