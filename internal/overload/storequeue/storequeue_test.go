package storequeue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ranked returns the context of a request with that rank.
func ranked(t *testing.T, r overload.Rank) context.Context {
	t.Helper()
	return overload.WithRequest(storequeue.NewRequest(t.Context()), nil, r)
}

// world is a queue, and the results of the calls that entered it, in order.
type world struct {
	*storequeue.Queue
	t  *testing.T
	mu sync.Mutex
	in []string
}

// full returns a queue with a limit of one call, which is in use, and a function that ends that
// call.
func full(t *testing.T, o storequeue.Options) (w *world, end func()) {
	t.Helper()
	o.Max = 1
	w = &world{Queue: storequeue.New(o), t: t}
	pass, err := w.Enter(ranked(t, 0))
	check.OK(t, err)
	return w, func() { pass.Leave(true) }
}

// call enters in the background and leaves at once. It returns when the call waits or is done.
func (w *world) call(ctx context.Context, name string) {
	go func() {
		pass, err := w.Enter(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		var shed *overload.ShedError
		switch {
		case errors.As(err, &shed):
			name += " refused"
		case errors.Is(err, context.Canceled):
			name += " gone"
		case err != nil:
			name += " " + err.Error()
		}
		w.in = append(w.in, name)
		pass.Leave(true)
	}()
	synctest.Wait()
}

func (w *world) want(names ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	check.Equal(w.t, "calls", w.in, names)
}

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce, Room: 10})
		w.call(ranked(t, 5), "first of 5")
		w.call(ranked(t, 9), "9")
		w.call(ranked(t, 3), "3")
		w.call(ranked(t, 5), "second of 5")
		w.call(ranked(t, overload.Ranks-1), "highest")
		w.want()
		end()
		w.want("highest", "9", "second of 5", "first of 5", "3")
	})
}

// TestStartedFirst checks that calls of requests with an earlier admitted call come first, in order
// of arrival whatever the ranks, and are not refused when others are.
func TestStartedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce})
		a, b := ranked(t, 1), ranked(t, 2)
		w.call(a, "a")
		w.call(b, "b")
		end()
		w.want("b", "a")
		pass, err := w.Enter(ranked(t, 0))
		check.OK(t, err)
		w.call(a, "a again")
		w.call(ranked(t, 100), "new")
		w.call(b, "b again")
		time.Sleep(time.Second) //nolint:forbidigo // simulated time
		w.want("b", "a", "new refused")
		pass.Leave(true)
		w.want("b", "a", "new refused", "a again", "b again")
	})
}

// TestAgeOfStarted checks that a call of a request with an earlier admitted call waits ten times as
// long before it is refused.
func TestAgeOfStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce})
		started := ranked(t, 1)
		w.call(started, "first")
		end()
		w.want("first")
		pass, err := w.Enter(ranked(t, 0)) // of a store that does not answer
		check.OK(t, err)
		began := time.Now()
		_, err = w.Enter(started)
		var shed *overload.ShedError
		check.Equal(t, "refused for want of the store", errors.As(err, &shed) && shed.Short == overload.Store, true)
		check.Equal(t, "waited", time.Since(began), 5*time.Second)
		pass.Leave(true)
	})
}

func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce, MaxAge: 300 * time.Millisecond})
		defer end()
		began := time.Now()
		var first time.Duration
		for range 200 {
			_, err := w.Enter(ranked(t, 7))
			var shed *overload.ShedError
			if !errors.As(err, &shed) || shed.Short != overload.Store {
				t.Fatalf("Enter() = %v, want a refusal for want of the store", err)
			}
			if first == 0 {
				first = shed.RetryAfter
				check.Equal(t, "waited", time.Since(began), 300*time.Millisecond)
			}
			if refusing := w.Stats().Refusing; refusing > 40*time.Second && shed.RetryAfter < 10*time.Second {
				t.Errorf("after %v: retry after %v", refusing, shed.RetryAfter)
			}
		}
		if first > 3*time.Second {
			t.Errorf("the first was to retry after %v, want at most 3s", first)
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // simulated time
		s := w.Stats()
		check.Equal(t, "refused", s.Calls.Of(overload.Shed), uint64(200))
		check.Equal(t, "refusing", s.Refusing, 0)
	})
}

// TestQueueFull checks that the lowest rank is refused, and within it the call that has waited
// longest.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce, Room: 3})
		for i, r := range []overload.Rank{5, 4, 4} {
			w.call(ranked(t, r), fmt.Sprintf("%d of %d", i, r))
		}
		w.call(ranked(t, 3), "lowest")
		w.want("lowest refused")
		w.call(ranked(t, 4), "newest of 4")
		w.want("lowest refused", "1 of 4 refused")
		w.call(ranked(t, 6), "6")
		w.want("lowest refused", "1 of 4 refused", "2 of 4 refused")
		check.Equal(t, "queued", w.Stats().Queued, 3)
		end()
		w.want("lowest refused", "1 of 4 refused", "2 of 4 refused", "6", "0 of 5", "newest of 4")
	})
}

func TestCallersWhoHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce})
		gone, leave := context.WithCancel(ranked(t, 9))
		w.call(gone, "9")
		w.call(ranked(t, 5), "5")
		w.call(gone, "9")
		leave()
		w.want("9 gone", "9 gone")
		end()
		w.want("9 gone", "9 gone", "5")
		w.call(gone, "late")
		w.want("9 gone", "9 gone", "5", "late gone")
		s := w.Stats()
		check.Equal(t, "abandoned", s.Calls.Of(overload.Abandoned), uint64(3))
		check.Equal(t, "in flight", s.InFlight, 0)
	})
}

// TestGoneAtItsTurn checks that the turn of a caller that hangs up at the same moment goes to
// another call.
func TestGoneAtItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce})
			gone, leave := context.WithCancel(ranked(t, 9))
			w.call(gone, "9")
			w.call(ranked(t, 5), "5")
			end() // 9 has its turn, and has not run since
			leave()
			synctest.Wait()
			s := w.Stats()
			if s.InFlight+s.Queued > 0 || !slices.Contains(w.in, "5") {
				t.Fatalf("calls %q, then %+v", w.in, s)
			}
			check.Equal(t, "outcomes of three calls", s.Calls.Of(overload.Admitted)+s.Calls.Of(overload.Abandoned)+s.Calls.Of(overload.Shed), uint64(3))
		}
	})
}

func TestOwnWorkNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := full(t, storequeue.Options{Mode: ratelimit.Enforce, Room: 1})
		w.call(ranked(t, overload.Ranks-1), "request")
		w.call(t.Context(), "own")
		w.want("own")
		end()
		w.want("own", "request")
	})
}

// TestNeverMoreThanMax runs many calls with callers that may hang up at any time.
func TestNeverMoreThanMax(t *testing.T) {
	for name, least := range map[string]int{"fixed": 0, "adaptive": 2} {
		t.Run(name, func(t *testing.T) {
			const most = 8
			l := storequeue.New(storequeue.Options{Max: most, Min: least, MaxAge: time.Millisecond, Mode: ratelimit.Enforce})
			var now, peak atomic.Int64
			var calls sync.WaitGroup
			for i := range 100 {
				calls.Go(func() {
					for j := range 100 {
						ctx, cancel := context.WithTimeout(ranked(t, overload.Rank((i+j)%overload.Ranks)), time.Duration(j)*20*time.Microsecond)
						if pass, err := l.Enter(ctx); err == nil {
							n := now.Add(1)
							for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
							}
							<-time.After(50 * time.Microsecond)
							now.Add(-1)
							pass.Leave(j%3 > 0)
						}
						cancel()
					}
				})
			}
			calls.Wait()
			s := l.Stats()
			t.Logf("at most %d at once; %+v", peak.Load(), s)
			if peak.Load() > most || s.InFlight != 0 || s.Queued != 0 {
				t.Errorf("at most %d at once, want %d; afterwards %d in flight and %d queued", peak.Load(), most, s.InFlight, s.Queued)
			}
		})
	}
}

// TestLimitFollowsLatency checks that the limit falls when the store becomes slow, stays within its
// bounds however long that lasts, although the baseline adapts, and returns to the maximum some
// time after the store is fast again.
func TestLimitFollowsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const least, most = 5, 40
		const fast, slow = 20 * time.Millisecond, 800 * time.Millisecond
		l := storequeue.New(storequeue.Options{Max: most, Min: least, Mode: ratelimit.Enforce})
		run := func(takes, lasts time.Duration) (low, high int) {
			var calls sync.WaitGroup
			low = most
			until := time.Now().Add(lasts)
			for range 2 * most {
				calls.Go(func() {
					for time.Now().Before(until) {
						if pass, err := l.Enter(ranked(t, 5)); err == nil {
							time.Sleep(takes) //nolint:forbidigo // simulated time
							pass.Leave(true)
						}
					}
				})
			}
			for time.Now().Before(until) {
				time.Sleep(time.Second) //nolint:forbidigo // simulated time
				low, high = min(low, l.Stats().Limit), max(high, l.Stats().Limit)
			}
			calls.Wait()
			return low, high
		}
		for _, step := range []struct {
			takes, lasts time.Duration
		}{{fast, time.Minute}, {slow, time.Minute}, {slow, 10 * time.Minute}, {fast, time.Minute / 2}} {
			low, high := run(step.takes, step.lasts)
			t.Logf("%v at %v: limit %d to %d, then %d", step.lasts, step.takes, low, high, l.Stats().Limit)
			if low < least || high > most {
				t.Errorf("limit from %d to %d, want it between %d and %d", low, high, least, most)
			}
			if step.lasts == time.Minute && step.takes == slow && low > most/2 {
				t.Errorf("the limit was never below %d while calls took 40 times as long", low)
			}
		}
		check.Equal(t, "limit in the end", l.Stats().Limit, most)
	})
}
