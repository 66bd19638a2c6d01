package limiter_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the queues of one process under a policy that can be changed. It runs in a bubble of
// synctest, so time.Now is its clock.
type world struct {
	t        *testing.T
	counters *counting.Counters
	queues   *limiter.Queues
	policy   atomic.Pointer[ratelimit.Effective]
	ahead    atomic.Int64 // how far the clock is ahead of timers
	settings ratelimit.Settings
	mu       sync.Mutex
	finished []int // numbers of the requests that waited, in order of completion; arbitrary if they pass together
}

// inWorld runs a test with a limit of requests in a second of ten frames, a max_wait and a
// max_waiting. A second limit, which never denies, allows a max_wait of more than a second.
func inWorld(t *testing.T, requests int64, wait time.Duration, waiting int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, counters: counting.NewCounters(0), settings: ratelimit.DefaultSettings()}
		l := ratelimit.NewLimit("per-second", requests, time.Second)
		l.Frames = 10
		w.change(func(s *ratelimit.Settings) {
			s.Default.Client = []ratelimit.Limit{l, ratelimit.NewLimit("per-minute", 1_000_000, time.Minute)}
			s.Default.User = s.Default.Client
			longest := ratelimit.Duration(wait)
			s.Default.MaxWait, s.Default.MaxWaiting = &longest, &waiting
		})
		w.queues = limiter.NewQueues(w.counters, func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) })
		test(w)
		synctest.Wait()
		check.Equal(t, "requests that still wait", w.queues.Waiting(), 0)
	})
}

// change changes the policy for all clients.
func (w *world) change(edit func(*ratelimit.Settings)) {
	w.t.Helper()
	edit(&w.settings)
	p, err := ratelimit.Compile(w.settings)
	check.OK(w.t, err)
	w.policy.Store(p.For("shop"))
}

var shop = ratelimit.Key{ClientID: "shop"}

// asked is a request that may wait.
type asked struct {
	limiter.Admission
	took time.Duration
	done chan struct{} // closed when Admission is set
	stop context.CancelFunc
}

func (a *asked) String() string {
	select {
	case <-a.done:
	default:
		return "waits"
	}
	return fmt.Sprint(a.Outcome, " ", a.took.Truncate(time.Millisecond))
}

// ask sends a request for the key. It returns when the request waits or was decided.
func (w *world) ask(k ratelimit.Key, number int) *asked { return w.askFor(k, number, w.policy.Load) }

func (w *world) askFor(k ratelimit.Key, number int, policy func() *ratelimit.Effective) *asked {
	ctx, cancel := context.WithCancel(w.t.Context())
	a := &asked{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		began := time.Now()
		a.Admission = w.queues.Take(ctx, k, policy)
		a.took = time.Since(began)
		if a.Outcome == ratelimit.Delayed {
			w.mu.Lock()
			w.finished = append(w.finished, number)
			w.mu.Unlock()
		}
	}()
	synctest.Wait()
	return a
}

func (w *world) askAll(n int) (all []*asked) {
	for i := range n {
		all = append(all, w.ask(shop, i))
	}
	return all
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // simulated
	synctest.Wait()
}

func texts(all []*asked) (out []string) {
	for _, a := range all {
		out = append(out, a.String())
	}
	return out
}

// TestWaitingInOrder: waiting requests pass in order of arrival, each when there is room. The time of
// synctest begins at the start of a frame.
func TestWaitingInOrder(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		pass(30 * time.Millisecond)
		all := w.askAll(7)
		check.Equal(t, "waiting", w.queues.Waiting(), 4)
		pass(3 * time.Second)
		check.Equal(t, "requests", texts(all), []string{
			"allowed 0s", "allowed 0s", "delayed 971ms", "delayed 1.021s", "delayed 1.971s", "delayed 2.021s", "denied 0s",
		})
		check.Equal(t, "order", w.finished, []int{2, 3, 4, 5})
		check.Equal(t, "RetryAfter of the last", all[6].RetryAfter, 2971*time.Millisecond)
		check.Equal(t, "waited", all[2].Waited, 971*time.Millisecond)
	})
}

// TestTurnTooLate: a request that would not pass in time is denied at once, with the predicted
// time.
func TestTurnTooLate(t *testing.T) {
	inWorld(t, 2, time.Second, 4, func(w *world) {
		pass(30 * time.Millisecond)
		all := w.askAll(4)
		check.Equal(t, "requests", texts(all), []string{"allowed 0s", "allowed 0s", "waits", "denied 0s"})
		check.Equal(t, "RetryAfter", all[3].RetryAfter, 1021*time.Millisecond)
		pass(470 * time.Millisecond)
		all[2].stop()
		synctest.Wait()
		check.Equal(t, "the one that left", all[2].Outcome, ratelimit.Denied)
		late := w.ask(shop, 9)
		pass(time.Second)
		check.Equal(t, "in its place", late.String(), "delayed 501ms")
	})
}

// TestWhoLeaves: requests behind move up, even if the caller leaves at the moment of its admission.
func TestWhoLeaves(t *testing.T) {
	for _, when := range []time.Duration{500 * time.Millisecond, 971 * time.Millisecond} {
		inWorld(t, 2, 3*time.Second, 4, func(w *world) {
			pass(30 * time.Millisecond)
			all := w.askAll(5)
			time.AfterFunc(when, all[2].stop)
			pass(4 * time.Second)
			check.Equal(t, "the first", all[2].Outcome == ratelimit.Denied, all[3].took < time.Second)
			check.Equal(t, "last", all[4].took < 1500*time.Millisecond, all[2].Outcome == ratelimit.Denied)
			if when < 900*time.Millisecond {
				check.Equal(t, "requests", texts(all[2:]), []string{"denied 500ms", "delayed 971ms", "delayed 1.021s"})
			}
		})
	}
}

// TestQueueGivesBack: if an admitted request gets nothing, the next one passes at once.
func TestQueueGivesBack(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		all := w.askAll(4)
		pass(100 * time.Millisecond)
		w.queues.GiveBack(shop, &all[0].Admission)
		synctest.Wait()
		check.Equal(t, "the next two", texts(all[2:]), []string{"delayed 100ms", "waits"})
		pass(3 * time.Second)
	})
}

// TestNobodyOvertakes: a request arrives every millisecond. Requests are admitted in order of
// arrival, each at the first millisecond with room.
func TestNobodyOvertakes(t *testing.T) {
	inWorld(t, 20, time.Second, 10, func(w *world) {
		exact := counting.NewCounters(0)
		var want, got []time.Duration
		began := time.Now()
		var all []*asked
		for i := range 4000 {
			now := time.Now()
			if d := exact.Take(now, shop, w.policy.Load(), 1); d.Outcome == ratelimit.Allowed {
				want = append(want, now.Sub(began))
			}
			all = append(all, w.ask(shop, i))
			pass(time.Millisecond)
		}
		pass(time.Second)
		for i, a := range all {
			at := time.Duration(i)*time.Millisecond + a.took
			if (a.Outcome == ratelimit.Allowed || a.Outcome == ratelimit.Delayed) && at < 4*time.Second {
				got = append(got, at)
			}
		}
		check.Equal(t, "in order", slices.IsSorted(w.finished), true)
		check.Equal(t, "times of admission", got, want)
	})
}

// TestNewcomerBehindALateQueue: a new request waits behind the others even if there is room because
// the timer of the queue is late.
func TestNewcomerBehindALateQueue(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		pass(30 * time.Millisecond)
		w.askAll(3)
		w.ahead.Store(int64(990 * time.Millisecond))
		newcomer := w.ask(shop, 3)
		pass(3 * time.Second)
		check.Equal(t, "the newcomer", newcomer.Outcome, ratelimit.Delayed)
	})
}

// TestAllLeaveInTheMomentOfTheirTurn: no request is counted.
func TestAllLeaveInTheMomentOfTheirTurn(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		pass(30 * time.Millisecond)
		w.askAll(2)
		ctx, leave := context.WithCancel(w.t.Context())
		gone := make(chan struct{})
		asked := false
		go func() {
			defer close(gone)
			w.queues.Take(ctx, shop, func() *ratelimit.Effective {
				if asked { // at its admission
					leave()
					<-gone
				}
				asked = true
				return w.policy.Load()
			})
		}()
		pass(2 * time.Second)
		for _, u := range w.counters.Usage(time.Now(), shop) {
			check.Equal(t, "counted under "+u.Limit.Name, u.Unflushed, 2)
		}
	})
}

// TestClose: all waiting requests are denied at once, with their predicted time, and no request
// waits after that.
func TestClose(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		pass(30 * time.Millisecond)
		all := w.askAll(5)
		w.queues.Close()
		synctest.Wait()
		all = append(all, w.ask(shop, 5))
		check.Equal(t, "requests", texts(all[2:]), []string{"denied 0s", "denied 0s", "denied 0s", "denied 0s"})
		check.Equal(t, "RetryAfter of the first", all[2].RetryAfter, 971*time.Millisecond)
		check.Equal(t, "RetryAfter of the third", all[4].RetryAfter, 1971*time.Millisecond)
	})
}

// TestLiveChange: changes apply to waiting requests within two seconds.
func TestLiveChange(t *testing.T) {
	limit := func(n int64) func(*ratelimit.Settings) {
		return func(s *ratelimit.Settings) {
			s.Default.Client = []ratelimit.Limit{ratelimit.NewLimit("per-minute", n, time.Minute)}
		}
	}
	wait := func(d time.Duration) func(*ratelimit.Settings) {
		return func(s *ratelimit.Settings) { longest := ratelimit.Duration(d); s.Default.MaxWait = &longest }
	}
	for name, tt := range map[string]struct {
		change func(*ratelimit.Settings)
		want   []string
	}{
		"none":            {func(*ratelimit.Settings) {}, []string{"delayed 5.001s", "delayed 7.501s"}},
		"a higher limit":  {limit(40), []string{"delayed 400ms", "delayed 400ms"}},
		"a lower limit":   {limit(22), []string{"denied 400ms", "denied 400ms"}},
		"no waiting":      {func(s *ratelimit.Settings) { s.Default.MaxWait, s.Default.MaxWaiting = nil, nil }, []string{"denied 400ms", "denied 400ms"}},
		"a shorter wait":  {wait(6 * time.Second), []string{"delayed 5.001s", "denied 400ms"}},
		"a trusted one":   {func(s *ratelimit.Settings) { s.Clients = map[string]ratelimit.Policy{"shop": {Trusted: true}} }, []string{"trusted 400ms", "trusted 400ms"}},
		"the mode off":    {func(s *ratelimit.Settings) { s.Mode = ratelimit.Off }, []string{"off 400ms", "off 400ms"}},
		"the mode dryrun": {func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun }, []string{"would_delay 400ms", "would_delay 400ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, time.Second, 4, func(w *world) {
				w.change(func(s *ratelimit.Settings) { limit(24)(s); wait(10 * time.Second)(s) })
				w.askAll(24)
				pass(55 * time.Second)
				all := w.askAll(2)
				w.change(tt.change)
				pass(10 * time.Second)
				check.Equal(t, "requests", texts(all), tt.want)
			})
		})
	}
}

// TestDryRun: no request waits. The counts and the predicted denials equal those under enforcement.
func TestDryRun(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		w.change(func(s *ratelimit.Settings) { s.Mode = ratelimit.DryRun })
		pass(30 * time.Millisecond)
		all := w.askAll(7)
		check.Equal(t, "requests", texts(all), []string{
			"allowed 0s", "allowed 0s", "would_delay 0s", "would_delay 0s", "would_delay 0s", "would_delay 0s", "would_deny 0s",
		})
		check.Equal(t, "held", w.queues.Waiting(), 0)
		_, denies := w.queues.Denies(shop, w.policy.Load())
		check.Equal(t, "denied before", denies, false)
		pass(1500 * time.Millisecond)
		check.Equal(t, "when two have had their turn", w.ask(shop, 7).String(), "would_delay 0s")
		w.change(func(s *ratelimit.Settings) { s.Mode = ratelimit.Enforce })
		late := w.ask(shop, 8)
		pass(3 * time.Second)
		check.Equal(t, "once it is enforced", late.Outcome, ratelimit.Delayed)
	})
}

// TestDenies: a request that could wait is not denied in advance.
func TestDenies(t *testing.T) {
	inWorld(t, 2, time.Second, 2, func(w *world) {
		var got []bool
		ask := func() {
			_, denies := w.queues.Denies(shop, w.policy.Load())
			got = append(got, denies)
		}
		ada := ratelimit.Key{ClientID: "shop", Username: "ada"}
		w.ask(ada, 0)
		w.ask(ada, 0)
		_, denies := w.queues.Denies(ada, w.policy.Load())
		check.Equal(t, "denied, whose turn would come too late", denies, true)
		pass(30 * time.Millisecond)
		ask()
		w.askAll(2)
		ask()
		w.ask(shop, 2)
		ask()
		pass(500 * time.Millisecond)
		ask()
		w.ask(shop, 3)
		ask()
		d, _ := w.queues.Denies(shop, w.policy.Load())
		check.Equal(t, "RetryAfter", d.RetryAfter, 1471*time.Millisecond)
		check.Equal(t, "denied", got, []bool{false, false, true, false, true})
		pass(time.Second)
	})
}

// TestTenThousandCallers: the allowed number of requests wait, and all others are denied at once.
func TestTenThousandCallers(t *testing.T) {
	inWorld(t, 2, 10*time.Second, 10, func(w *world) {
		before := runtime.NumGoroutine()
		var denied, allowed, delayed atomic.Int64
		for i := range 10_000 {
			k := ratelimit.Key{ClientID: "shop", Username: fmt.Sprint(i % 200)}
			go func() {
				switch t := w.queues.Take(w.t.Context(), k, w.policy.Load); t.Outcome {
				case ratelimit.Denied:
					denied.Add(1)
				case ratelimit.Allowed:
					allowed.Add(1)
				case ratelimit.Delayed:
					delayed.Add(1)
				default:
					w.t.Error(t.Outcome)
				}
			}()
		}
		synctest.Wait()
		check.Equal(t, "waiting", w.queues.Waiting(), 1000)
		runtime.GC() // NumGoroutine may count 32 ended goroutines while a processor frees them, but not while the world is stopped
		check.Equal(t, "more goroutines than those that wait, and a few that end", runtime.NumGoroutine()-before > 1010, false)
		check.Equal(t, "denied and allowed", []int64{denied.Load(), allowed.Load()}, []int64{8600, 400})
		pass(10 * time.Second)
		check.Equal(t, "delayed", delayed.Load(), int64(1000))
	})
}

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
