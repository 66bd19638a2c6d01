package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// TestGateKnowsTiersAndOverrides: a user with an override has its limits, also before the password
// check and however the name is typed. Other users of the client have the limits of its tier.
func TestGateKnowsTiersAndOverrides(t *testing.T) {
	limit := func(requests int64) []ratelimit.Limit {
		return []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
	}
	tier := clientcfg.PolicySet{}.WithTier("gold", &clientcfg.Tier{Policy: ratelimit.Policy{User: limit(3)}}).WithPolicy("shop", &clientcfg.ClientPolicy{Tier: "gold"})
	for _, tt := range []struct {
		name   string
		set    clientcfg.PolicySet
		passes int
	}{
		{"of the tier", tier, 3},
		{"of one user, lower", tier.WithOverride("shop", "alice", &clientcfg.Override{User: limit(1)}), 1},
		{"of one user, higher", tier.WithOverride("shop", "alice", &clientcfg.Override{User: limit(5)}), 5},
		{"of another user", tier.WithOverride("shop", "alicia", &clientcfg.Override{User: limit(1)}), 3},
		{"of a user of another client", tier.WithOverride("other", "alice", &clientcfg.Override{User: limit(1)}), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := policyWorld(t, ratelimit.DefaultSettings(), tt.set)
			names := []string{"alice", "ALICE"}
			for i := range tt.passes + 2 {
				denial := w.limited("shop", grants.TokenRequest{GrantType: "password", Username: names[i%2], Password: password})
				check.Equal(t, "denied", denial != nil, i >= tt.passes)
			}
		})
	}
}
