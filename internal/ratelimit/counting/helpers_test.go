package counting

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

func perMinute(requests int64) ratelimit.Limit {
	return ratelimit.NewLimit("per-minute", requests, time.Minute)
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Ticket{})); diff != "" {
		t.Errorf("%s (- wanted, + got):\n%s", what, diff)
	}
}

// forGrants returns a copy of the limit, restricted to some grants.
func forGrants(l ratelimit.Limit, g ratelimit.Grants) ratelimit.Limit {
	l.Grants = g
	return l
}

// appliedBy returns the limits of the client "client" under a policy with the same list for users
// and the client.
func appliedBy(tb rapid.TB, p ratelimit.Policy) *ratelimit.Effective {
	tb.Helper()
	compiled, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: p})
	if err != nil {
		tb.Fatalf("compile: %v", err)
	}
	return compiled.For("client")
}

// strictly returns a strict limit.
func strictly(requests int64, window time.Duration) ratelimit.Limit {
	l := ratelimit.NewLimit("strict", requests, window)
	l.MakeStrict()
	return l
}

// mustEqual fails the test unless got is want; what names the value.
func mustEqual[T comparable](t rapid.TB, what string, want, got T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s = %v, want %v", what, got, want)
	}
}

// edited returns p with changes.
func edited(tb testing.TB, p *ratelimit.Compiled, change func(e *ratelimit.CompiledEdit) error) *ratelimit.Compiled {
	tb.Helper()
	e := p.Edit()
	check.OK(tb, change(e))
	return e.Compiled()
}

func defaults(tb testing.TB) *ratelimit.Compiled {
	tb.Helper()
	return defaultsWith(tb, ratelimit.DefaultSettings())
}

func defaultsWith(tb testing.TB, s ratelimit.Settings) *ratelimit.Compiled {
	tb.Helper()
	p, err := ratelimit.Compile(s)
	check.OK(tb, err)
	return p
}

// override returns p with limits for one user. No limits remove the override.
func override(tb testing.TB, p *ratelimit.Compiled, clientID, username string, limits ...ratelimit.Limit) *ratelimit.Compiled {
	tb.Helper()
	return edited(tb, p, func(e *ratelimit.CompiledEdit) error { return e.SetOverride(clientID, username, limits) })
}

// epoch is an arbitrary time, not aligned to anything.
const epoch = 1_622_211_783_217

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// syncs maps counters to their Sync, for tests that act as a syncer.
var syncs sync.Map

// attach gives counters a syncer that is idle until a test calls it.
func attach(c *Counters) *Sync {
	y := c.Sync(SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second})
	syncs.Store(c, y)
	return y
}

// settle acts as a syncer with writes that are applied at once, and returns how many writes it
// made. The first exchange of a counter may only read; settle then makes another one.
func settle(c *Counters, now time.Time) (n int) {
	v, _ := syncs.Load(c)
	y, _ := v.(*Sync)
	for i, p := range y.Due(now, nil) {
		for round := range 2 {
			task, ok := y.Begin(now, p.Ticket, int64(2*i+round+1))
			if !ok {
				break
			}
			done := y.Finish(now, &task, Result{Read: task.Read, Status: Applied, NewEtag: 1})
			if task.Seq != 0 {
				n++
			}
			if task.Seq != 0 || !done.Planned {
				break
			}
			p = done.Next
		}
	}
	return n
}
