package turns_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// askFrom is ask for a request of a grant from a source address.
func (w *world) askFrom(k ratelimit.Key, grant ratelimit.Grants, source string) *asked {
	return w.askFor(k, 0, func() *ratelimit.Effective { return w.policy.Load().ForRequest(grant, source) })
}

// TestGrantsWaitInLinesOfTheirOwn: a request of a grant that the limit does not count does not stand behind those that
// wait for it.
func TestGrantsWaitInLinesOfTheirOwn(t *testing.T) {
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
		_, denies := w.lines.Denies(user(1), w.policy.Load().ForRequest(ratelimit.GrantRefresh, ""))
		check.Equal(t, "a refresh finds a place", denies, false)
		pass(2 * time.Second)
		check.Equal(t, "the third refresh", all[2].String(), "delayed 971ms")
	})
}

// TestSourcesOfALine: each request of a line counts against its own source, also if the one before it left while it was
// decided, and nobody waits for a source.
func TestSourcesOfALine(t *testing.T) {
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
