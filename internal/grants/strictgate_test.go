package grants_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// strictWorld has a strict limit of 2 per hour for clients. Permits arrive when exchange is called.
func strictWorld(t *testing.T, settings ratelimit.Settings, set clientcfg.PolicySet) (w *world, seen *[]limiter.Decided, exchange func()) {
	t.Helper()
	counters := counting.NewCounters(100)
	syncer := counters.Sync(counting.SyncOptions{Interval: time.Second, MaxBackoff: time.Second})
	policies := testworld.Policies(t, settings, set)
	seen = new([]limiter.Decided)
	w = newWorld(t, func(o *grants.Options) {
		o.Counters, o.Policies = counters, func() *clientcfg.PolicySnapshot { return policies }
		o.Observe = func(_ context.Context, d limiter.Decided) { *seen = append(*seen, d) }
	})
	w.clock.Advance(time.Second) // well into a frame
	syncer.SetUncertainty(w.clock.Now(), time.Millisecond)
	var seq int64
	exchange = func() {
		t.Helper()
		for _, plan := range syncer.Due(w.clock.Now(), nil) {
			seq++
			if task, ok := syncer.Begin(w.clock.Now(), plan.Ticket, seq); ok {
				syncer.Finish(w.clock.Now(), &task, counting.Result{Status: counting.Applied, Read: true, NewEtag: seq})
			}
		}
		synctest.Wait()
	}
	return w, seen, exchange
}

// perHour is a limit of 2 per hour.
func perHour() ratelimit.Limit {
	l := ratelimit.NewLimit("per-hour", 2, time.Hour)
	l.MakeStrict()
	return l
}

func strictSettings(mode ratelimit.Mode) ratelimit.Settings {
	s := ratelimit.DefaultSettings()
	s.Mode, s.Default.Client = mode, []ratelimit.Limit{perHour()}
	return s
}

// TestGateAwaitsPermits: a request waits for permits of a strict limit as long as the limit and the
// client do.
func TestGateAwaitsPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen, exchange := strictWorld(t, strictSettings(ratelimit.Enforce), clientcfg.PolicySet{})
		ctx, hangUp := context.WithCancel(t.Context())
		gone, first := w.asking(ctx), w.asking(t.Context())
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // simulated
		hangUp()
		synctest.Wait()
		exchange()
		synctest.Wait()
		_ = check.As[*oautherr.LimitedError](t, gone.err)
		check.OK(t, first.err)
		check.Equal(t, "outcome", (*seen)[1].Decision.Outcome, ratelimit.Allowed)

		late := w.asking(t.Context())
		time.Sleep(49 * time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		check.Equal(t, "answered before lease_wait", late.answered.Load(), false)
		time.Sleep(time.Millisecond) //nolint:forbidigo // simulated
		synctest.Wait()
		limited := check.As[*oautherr.LimitedError](t, late.err)
		check.Equal(t, "over a quota", limited.QuotaExceeded, false)
		check.Equal(t, "waited", (*seen)[2].Leased, 50*time.Millisecond)
	})
}

// TestDryRunAwaitsNoPermits: predictions, in dry-run or for a candidate, do not wait for permits,
// and deny everything over the limit.
func TestDryRunAwaitsNoPermits(t *testing.T) {
	for name, tc := range map[string]struct {
		mode ratelimit.Mode
		set  clientcfg.PolicySet
		want func(d limiter.Decided) bool // denied
	}{
		"dry-run": {ratelimit.DryRun, clientcfg.PolicySet{}, func(d limiter.Decided) bool { return d.Decision.Outcome == ratelimit.WouldDeny }},
		"candidate": {ratelimit.Off, clientcfg.PolicySet{}.WithCandidate("shop", &clientcfg.Candidate{Policy: ratelimit.Policy{Client: []ratelimit.Limit{perHour()}}}), func(d limiter.Decided) bool {
			return d.Tried.Outcome == ratelimit.WouldDeny
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, seen, _ := strictWorld(t, strictSettings(tc.mode), tc.set)
				for i := range 4 {
					a := w.asking(t.Context())
					check.OK(t, a.err)
					check.Equal(t, "answered", a.answered.Load(), true)
					check.Equal(t, "would be denied", tc.want((*seen)[i]), i >= 2)
				}
			})
		})
	}
}

// TestReuseUnderStrictLimits: a request that waits for permits delays only the requests denied
// because of it, which get its token.
func TestReuseUnderStrictLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strictSettings(ratelimit.Enforce)
		s.Default.OverLimit = ratelimit.OverLimitReuse
		s.Default.Client[0].Requests = 1
		w, _, exchange := strictWorld(t, s, clientcfg.PolicySet{})
		first, second := w.asking(t.Context()), w.asking(t.Context())
		check.Equal(t, "answered", first.answered.Load() || second.answered.Load(), false)
		exchange()
		check.OK(t, first.err)
		check.OK(t, second.err)
		check.Equal(t, "token", second.token, first.token)
	})
}
