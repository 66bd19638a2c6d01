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

// askFrom is ask for a request of a grant from a source address.
func (w *world) askFrom(k ratelimit.Key, grant ratelimit.Grants, source string) *asked {
	return w.askFor(k, 0, func() *ratelimit.Effective { return w.policy.Load().ForRequest(grant, source) })
}

// TestGrantsWaitInQueuesOfTheirOwn: a request with a grant that a limit does not count does not wait
// behind requests that wait for that limit.
func TestGrantsWaitInQueuesOfTheirOwn(t *testing.T) {
	inWorld(t, 100, 3*time.Second, 3, func(w *world) {
		refreshes := ratelimit.NewLimit("refreshes", 2, time.Second)
		refreshes.Frames, refreshes.Grants = 10, ratelimit.GrantRefresh
		w.change(func(s *ratelimit.Settings) { s.Default.User = append([]ratelimit.Limit{refreshes}, s.Default.User...) })
		pass(30 * time.Millisecond)
		var all []*asked
		for range 3 {
			all = append(all, w.askFrom(user(1), ratelimit.GrantRefresh, ""))
		}
		check.Equal(t, "refreshes", texts(all), []string{"allowed 0s", "allowed 0s", "waits"})
		code := w.askFrom(user(1), ratelimit.GrantCode, "")
		check.Equal(t, "a code", code.String(), "allowed 0s")
		_, denies := w.queues.Denies(user(1), w.policy.Load().ForRequest(ratelimit.GrantRefresh, ""))
		check.Equal(t, "a refresh finds a place", denies, false)
		pass(2 * time.Second)
		check.Equal(t, "the third refresh", all[2].String(), "delayed 971ms")
	})
}

// TestSourcesOfAQueue: each waiting request counts against its own source, even if the request
// before it left while it was decided. No request waits for a source.
func TestSourcesOfAQueue(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 3, func(w *world) {
		w.change(func(s *ratelimit.Settings) {
			s.Default.Source = []ratelimit.Limit{ratelimit.NewLimit("per-address", 3, time.Minute)}
		})
		pass(30 * time.Millisecond)
		var all []*asked
		for _, from := range []string{"a", "a", "b", "c"} {
			all = append(all, w.askFrom(shop, 0, from))
		}
		check.Equal(t, "before", texts(all), []string{"allowed 0s", "allowed 0s", "waits", "waits"})
		all[2].stop()
		pass(2 * time.Second)
		check.Equal(t, "the last one", all[3].String(), "delayed 971ms")
		for from, want := range map[string]int64{"a": 2, "b": 0, "c": 1} {
			var got int64
			for _, u := range w.counters.Usage(time.Now(), shop.Source(from)) {
				got += u.Unflushed
			}
			check.Equal(t, "counted from "+from, got, want)
		}
		over := w.askFrom(user(1), 0, "a")
		check.Equal(t, "the third from a", over.String(), "allowed 0s")
		over = w.askFrom(user(2), 0, "a")
		check.Equal(t, "the fourth from a", over.String(), "denied 0s")
		check.Equal(t, "over what it shares", over.OverShared(), true)
	})
}

// askCycling sends requests of one user, cycling through grants, and returns how many wait.
func (w *world) askCycling(n int, grants ...ratelimit.Grants) (all []*asked, held int) {
	for i := range n {
		all = append(all, w.askFrom(user(1), grants[i%len(grants)], ""))
	}
	return all, w.queues.Waiting()
}

// TestOneQueueWhereNoLimitTellsGrants: a limit for some grants, or an override of another user, does
// not split a queue for a limit that counts all grants.
func TestOneQueueWhereNoLimitTellsGrants(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a limit for refreshes": func(w *world) {
			refreshes := ratelimit.NewLimit("refreshes", 100, time.Minute)
			refreshes.Grants = ratelimit.GrantRefresh
			w.change(func(s *ratelimit.Settings) { s.Default.User = append([]ratelimit.Limit{refreshes}, s.Default.User...) })
		},
		"an override": func(w *world) {
			p, err := ratelimit.Compile(w.settings)
			check.OK(w.t, err)
			e := p.Edit()
			check.OK(w.t, e.SetOverride("shop", "somebody-else", []ratelimit.Limit{ratelimit.NewLimit("x", 5, time.Minute)}))
			w.policy.Store(e.Compiled().For("shop"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, 3*time.Second, 10, func(w *world) {
				change(w)
				pass(30 * time.Millisecond)
				all, held := w.askCycling(20, ratelimit.GrantRefresh, ratelimit.GrantCode, ratelimit.GrantPassword)
				check.Equal(t, "held", held, 5)
				pass(4 * time.Second)
				check.Equal(t, "requests", texts(all[:8]), []string{
					"allowed 0s", "allowed 0s", "delayed 971ms", "delayed 1.021s", "delayed 1.971s", "delayed 2.021s", "delayed 2.971s", "denied 0s",
				})
			})
		})
	}
}

// TestGrantsAddedWhileTheyWait: new requests wait behind earlier ones, and max_waiting bounds all
// requests of a key.
func TestGrantsAddedWhileTheyWait(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 4, func(w *world) {
		pass(30 * time.Millisecond)
		all, _ := w.askCycling(6, ratelimit.GrantRefresh)
		w.change(func(s *ratelimit.Settings) {
			l := ratelimit.NewLimit("refreshes", 100, time.Minute)
			l.Grants = ratelimit.GrantRefresh
			s.Default.User = append(s.Default.User, l)
		})
		more, held := w.askCycling(4, ratelimit.GrantRefresh)
		check.Equal(t, "held", held, 4)
		pass(4 * time.Second)
		check.Equal(t, "requests", texts(append(all, more...)[2:]), []string{
			"delayed 971ms", "delayed 1.021s", "delayed 1.971s", "delayed 2.021s", "denied 0s", "denied 0s", "denied 0s", "denied 0s",
		})
	})
}

// TestNoStandingOfAnotherAddress: a denial in a queue does not apply to the source of its first
// request.
func TestNoStandingOfAnotherAddress(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 1, func(w *world) {
		w.change(func(s *ratelimit.Settings) {
			s.Default.Source = []ratelimit.Limit{ratelimit.NewLimit("per-address", 30, time.Minute)}
		})
		pass(30 * time.Millisecond)
		for range 3 {
			w.askFrom(user(1), 0, "a")
		}
		denied := w.askFrom(user(1), 0, "b")
		const want = `"per-second";r=0;t=1, "per-minute";r=999998;t=60`
		_, got := denied.Headers()
		check.Equal(t, "RateLimit", got, want)
		d, denies := w.queues.Denies(user(1), w.policy.Load().ForRequest(0, "b"))
		check.Equal(t, "denied before", denies, true)
		_, got = d.Headers()
		check.Equal(t, "RateLimit before", got, want)
		pass(4 * time.Second)
	})
}

// TestGiveBackToTheSource: a request that leaves after its admission is refunded to its own source,
// under the policy that counted it.
func TestGiveBackToTheSource(t *testing.T) {
	inWorld(t, 2, 3*time.Second, 3, func(w *world) {
		w.change(func(s *ratelimit.Settings) {
			s.Default.Source = []ratelimit.Limit{ratelimit.NewLimit("per-address", 30, time.Minute)}
		})
		first := w.askFrom(shop, 0, "a")
		w.queues.GiveBack(shop, &first.Admission)
		u := w.counters.Usage(time.Now(), shop.Source("a"))
		check.Equal(t, "counted from a", len(u), 0)
		second := w.askFrom(shop, 0, "b")
		w.change(func(s *ratelimit.Settings) { s.Default.Source[0].Requests = 20 })
		w.askFrom(shop, 0, "b")
		w.queues.GiveBack(shop, &second.Admission)
		check.Equal(t, "counted from b", w.counters.Usage(time.Now(), shop.Source("b"))[0].Unflushed, int64(2))
	})
}
