package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
	"oauth-server/internal/syncer/memstore"
)

// TestSettleOnAStrictLimit: the user named in a response has no permits here yet.
func TestSettleOnAStrictLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := limited(2, 100, 100)
		settings.Default.User[0].MakeStrict()
		policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
		counters, cfg := counting.NewCounters(0), syncer.DefaultConfig()
		cfg.Clock = clock.New(nil)
		s := syncer.New(counters, &memstore.Store{}, nil, cfg)
		s.Start(t.Context())
		j := limiter.New(limiter.Options{
			Counters: counters, Policies: func() limiter.Policies { return policies }, Clock: cfg.Clock.Now,
		})
		for range 2 {
			v := j.Reserve(t.Context(), unknown())
			_, late := j.Settle(t.Context(), &v, "ada")
			check.Equal(t, "late", late, false)
		}
		third := j.Reserve(t.Context(), refresh("ada"))
		check.Equal(t, "a third one", third.Outcome, ratelimit.Denied)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		_, err := s.Stop(ctx)
		check.OK(t, err)
	})
}
