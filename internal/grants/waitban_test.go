package grants_test

import (
	"context"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
)

// waitBanWorld is a waitWorld in which one denial bans the client shop.
func waitBanWorld(t *testing.T, test func(w *world, keeper *bans.Bans)) {
	t.Helper()
	b := ratelimit.DefaultBan()
	b.Denials = 1
	set := clientcfg.PolicySet{}.WithPolicy("shop", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{Ban: &b}})
	waitWorld(t, set, func(w *world, _ *[]limiter.Decided) {
		keeper, err := bans.New(w.tb.Context(), bans.Options{Store: bans.NewRepository(w.store), Counters: w.opts.Counters, Clock: time.Now})
		check.OK(w.tb, err)
		w.reopen(func(o *grants.Options) { o.Bans = keeper })
		w.mustToken("shop", clientCredentials)
		w.mustToken("shop", clientCredentials)
		test(w, keeper)
	})
}

// TestWhoWaitedIsNoDenial: a queued request is not a denial when the process stops, after that, or
// when its client disconnects. A request that finds the queue full is denied.
func TestWhoWaitedIsNoDenial(t *testing.T) {
	for name, tt := range map[string]struct {
		deny   func(w *world)
		banned int
	}{
		"stop": {func(w *world) {
			done := w.waiting("shop", clientCredentials)
			w.service.StopWaiting()
			_ = check.As[*oautherr.LimitedError](w.tb, (<-done).err)
		}, 0},
		"after the stop": {func(w *world) {
			w.service.StopWaiting()
			_ = w.deny(1, "shop", clientCredentials)
		}, 0},
		"hanging up": {func(w *world) {
			ctx, hangUp := context.WithTimeout(w.tb.Context(), 100*time.Millisecond)
			defer hangUp()
			req := clientCredentials
			req.Credentials = w.credentials("shop")
			_, err := w.service.Token(ctx, req)
			_ = check.As[*oautherr.LimitedError](w.tb, err)
		}, 0},
		"no place": {func(w *world) {
			done := w.waiting("shop", clientCredentials)
			_ = w.deny(1, "shop", clientCredentials)
			<-done
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			waitBanWorld(t, func(w *world, keeper *bans.Bans) {
				tt.deny(w)
				check.Equal(w.tb, "bans", keeper.All(ratelimit.Enforce).Len(), tt.banned)
			})
		})
	}
}

// TestBanWhileItWaits: the queued request is refused with the ban, and the next one gets its turn.
func TestBanWhileItWaits(t *testing.T) {
	waitBanWorld(t, func(w *world, keeper *bans.Bans) {
		t, shop := w.tb, ratelimit.Key{ClientID: "shop"}
		done := w.waiting("shop", clientCredentials)
		keeper.Denied(time.Now(), shop, w.opts.Policies().For("shop"))
		limited := check.As[*oautherr.LimitedError](t, (<-done).err)
		check.Equal(t, "Banned", limited.Banned, true)
		usage := w.opts.Counters.Usage(time.Now(), shop)
		check.Equal(t, "counted", usage[0].Known+usage[0].Unflushed, 2)
	})
}

// TestBanBeginsAtTheDenial: a ban starts at the denial, not at the arrival of the request, which
// may have waited for permits since.
func TestBanBeginsAtTheDenial(t *testing.T) {
	w, _ := banWorld(t, func(s *ratelimit.Settings) { s.Default.Ban.Denials = 1 })
	keeper, err := bans.New(t.Context(), bans.Options{Store: bans.NewRepository(w.store), Counters: w.opts.Counters, Clock: w.clock.Now})
	check.OK(t, err)
	var denied time.Time
	w.reopen(func(o *grants.Options) {
		o.Bans = keeper
		o.Clock = func() time.Time {
			w.clock.Advance(time.Millisecond) // at each look
			return w.clock.Now()
		}
		o.Observe = func(context.Context, limiter.Decided) { denied = w.clock.Now() }
	})
	_ = w.spend("shop", func() grants.TokenRequest { return clientCredentials })
	for _, ban := range keeper.All(ratelimit.Enforce).All() {
		check.Equal(t, "since", ban.Since.Equal(denied), true)
	}
	check.Equal(t, "bans", keeper.All(ratelimit.Enforce).Len(), 1)
}
