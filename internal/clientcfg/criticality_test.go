package clientcfg_test

import (
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// TestCriticalityInForce: the criticality used before a request is decided comes from the client,
// its tier or the settings for all, in any mode. A candidate does not change it, and its own is not
// tried.
func TestCriticalityInForce(t *testing.T) {
	base := ratelimit.DefaultSettings()
	base.Mode, base.Default.Criticality = ratelimit.Off, ratelimit.Sheddable
	base.Clients = map[string]ratelimit.Policy{"file": {Trusted: true, Criticality: ratelimit.CriticalPlus}}
	p, err := clientcfg.NewPolicySnapshot(base, clientcfg.PolicySet{})
	check.OK(t, err)
	for i, c := range []clientcfg.Change{
		stored("tiers/gold", `{"criticality":"sheddable_plus"}`),
		stored("policies/gold", `{"tier":"gold"}`),
		stored("policies/trusted", `{"tier":"gold","trusted":true}`),
		stored("policies/own", `{"tier":"gold","criticality":"critical"}`),
		stored("candidates/gold", `{"user":[{"requests":1}],"criticality":"critical_plus"}`),
	} {
		p, err = p.Apply(entry(int64(i+1), c))
		check.OK(t, err)
	}
	for id, want := range map[string]ratelimit.Criticality{
		"file": ratelimit.CriticalPlus, "gold": ratelimit.SheddablePlus, "trusted": ratelimit.SheddablePlus, "own": ratelimit.Critical, "other": ratelimit.Sheddable,
	} {
		check.Equal(t, id, p.For(id).Criticality, want)
	}
	trial, tried := p.Trial("gold")
	check.Equal(t, "tried", tried, true)
	check.Equal(t, "that of the trial", trial.Effective.Criticality, ratelimit.CriticalityUnset)
	p, err = p.Apply(entry(6, stored("settings", `{"criticality":"critical"}`)))
	check.OK(t, err)
	check.Equal(t, "other, after a change for all clients", p.For("other").Criticality, ratelimit.Critical)
	check.Equal(t, "gold, after it", p.For("gold").Criticality, ratelimit.SheddablePlus)
}
