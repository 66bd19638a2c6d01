package grants_test

import (
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
)

// TestWhoPassedUncountedGivesNothingBack: a client that becomes trusted while its request is queued
// passes without being counted. If the user is revoked too, there is no turn to give back, because
// it would belong to another request.
func TestWhoPassedUncountedGivesNothingBack(t *testing.T) {
	waitWorld(t, clientcfg.PolicySet{}, func(w *world, seen *[]limiter.Decided) {
		t := w.tb
		settings := ratelimit.DefaultSettings()
		settings.Clients = map[string]ratelimit.Policy{"shop": {Trusted: true}}
		trusting, policies := testworld.Policies(t, settings, clientcfg.PolicySet{}), w.opts.Policies
		var trusted atomic.Bool
		w.reopen(func(o *grants.Options) {
			o.Policies = func() *clientcfg.PolicySnapshot {
				if trusted.Load() {
					return trusting
				}
				return policies()
			}
		})
		w.mustToken("shop", ofAlice())
		w.mustToken("shop", ofAlice())
		done := w.waiting("shop", ofAlice())
		trusted.Store(true)
		w.revokeUser()

		time.Sleep(901 * time.Millisecond) //nolint:forbidigo // simulated: one millisecond before the turn
		key, counting := ratelimit.Key{ClientID: "shop", Username: "alice"}, *trusting.For("shop")
		counting.Trusted = false
		other := w.opts.Counters.Take(time.Now(), key, &counting, 1)
		check.Equal(t, "another request", other.Outcome, ratelimit.Allowed)
		wantCode(t, oautherr.InvalidGrant, (<-done).err)
		check.Equal(t, "outcome", (*seen)[2].Decision.Outcome, ratelimit.Trusted)
		check.Equal(t, "limits under which that is still counted", len(w.opts.Counters.Usage(time.Now(), key)), 1)
	})
}
