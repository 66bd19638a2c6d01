package storequeue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

// TestGoneCallersInOtherModes checks that only enforce mode keeps calls from the store.
func TestGoneCallersInOtherModes(t *testing.T) {
	ctx, leave := context.WithCancel(ranked(t, 5))
	leave()
	for _, mode := range []ratelimit.Mode{ratelimit.DryRun, ratelimit.Off} {
		l := storequeue.New(storequeue.Options{Max: 1, Mode: mode})
		pass, err := l.Enter(ctx)
		check.OK(t, err)
		pass.Leave(true)
	}
}

func TestOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce})
		w.call(ranked(t, 5), "waits")
		w.want()
		w.Set(ratelimit.Off)
		w.want("waits")
		w.call(ranked(t, 5), "at once")
		w.want("waits", "at once")
		end()
		w.Set(ratelimit.Enforce)
		check.Equal(t, "in flight", w.Stats().InFlight, 0)
	})
}

// TestDryRunCountsCallsThatEndEarly checks that a call that would have waited, and has ended before
// its turn, counts as admitted at its turn.
func TestDryRunCountsCallsThatEndEarly(t *testing.T) {
	l := storequeue.New(storequeue.Options{Max: 1, Mode: ratelimit.DryRun})
	first, err := l.Enter(ranked(t, 5))
	check.OK(t, err)
	early, err := l.Enter(ranked(t, 5))
	check.OK(t, err)
	early.Leave(true)
	first.Leave(true)
	s := l.Stats()
	check.Equal(t, "admitted", s.Calls.Of(overload.Admitted), uint64(2))
	check.Equal(t, "in flight", s.InFlight, 0)
}

// TestDryRun checks that the calls that would have been refused are the ones that enforce mode
// refuses, and that nothing waits.
func TestDryRun(t *testing.T) {
	refused := func(mode ratelimit.Mode) (n uint64, longest time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			l := storequeue.New(storequeue.Options{Max: 4, Room: 8, Mode: mode})
			var calls sync.WaitGroup
			var mu sync.Mutex
			for i := range 200 {
				calls.Go(func() {
					time.Sleep(time.Duration(i) * 20 * time.Millisecond) //nolint:forbidigo // simulated time
					began := time.Now()
					pass, err := l.Enter(ranked(t, 5))
					mu.Lock()
					longest = max(longest, time.Since(began))
					mu.Unlock()
					if err == nil && i < 100 {
						time.Sleep(2 * time.Second) //nolint:forbidigo // simulated time: the store is slow
					}
					pass.Leave(true)
				})
			}
			calls.Wait()
			s := l.Stats()
			check.Equal(t, "in flight", s.InFlight, 0)
			if mode == ratelimit.DryRun {
				check.Equal(t, "refused", s.Calls.Of(overload.Shed), uint64(0))
				n = s.Calls.Of(overload.WouldShed)
			} else {
				check.Equal(t, "would refuse", s.Calls.Of(overload.WouldShed), uint64(0))
				n = s.Calls.Of(overload.Shed)
			}
		})
		return n, longest
	}
	really, _ := refused(ratelimit.Enforce)
	would, longest := refused(ratelimit.DryRun)
	t.Logf("%d refused, %d in dry-run", really, would)
	if really < 80 || would < really*8/10 || would > really*12/10 {
		t.Errorf("%d would have been refused, and %d were", would, really)
	}
	check.Equal(t, "longest wait in dry-run", longest, 0)
}

// TestModeChanges checks that no call is stuck after a change of the mode, whatever the mode was
// when it arrived.
func TestModeChanges(t *testing.T) {
	l := storequeue.New(storequeue.Options{Max: 4, MaxAge: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	var calls, changes sync.WaitGroup
	changes.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			l.Set([]ratelimit.Mode{ratelimit.DryRun, ratelimit.Enforce, ratelimit.Off}[i%3])
			<-time.After(200 * time.Microsecond)
		}
	})
	for i := range 50 {
		calls.Go(func() {
			for range 100 {
				if pass, err := l.Enter(ranked(t, overload.Rank(i))); err == nil {
					<-time.After(100 * time.Microsecond)
					pass.Leave(true)
				}
			}
		})
	}
	calls.Wait()
	stop()
	changes.Wait()
	l.Set(ratelimit.Enforce)
	s := l.Stats()
	t.Logf("%+v", s)
	if s.InFlight != 0 || s.Queued != 0 {
		t.Errorf("%d in flight and %d queued afterwards", s.InFlight, s.Queued)
	}
}
