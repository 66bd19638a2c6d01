package clientcfg_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

func perAddress(requests int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit("per-address", requests, time.Minute)}
}

func ofRefresh(requests int64) []ratelimit.Limit {
	ls := limits(requests)
	ls[0].Grants = ratelimit.GrantRefresh
	return ls
}

// TestStoredGrantsAndSources: in settings, a policy, a tier, an override and a candidate they are
// read back as written, also if written by hand.
func TestStoredGrantsAndSources(t *testing.T) {
	const source, refresh = `[{"name":"per-address","requests":3}]`, `[{"requests":4,"grants":["refresh_token"]}]`
	byHand := []clientcfg.Change{
		stored("settings", `{"user":`+refresh+`,"source":`+source+`}`), stored("policies/shop", `{"user":`+refresh+`,"source":`+source+`}`),
		stored("tiers/gold", `{"source":`+source+`}`), stored("overrides/app ada", `{"user":`+refresh+`}`),
		stored("candidates/app", `{"source":`+source+`,"since":"2026-03-01T12:00:00Z"}`),
	}
	change := did(t)
	policy := ratelimit.Policy{User: ofRefresh(4), Source: perAddress(3)}
	written := []clientcfg.Change{
		change(clientcfg.ChangeSettings(clientcfg.SettingsOverride{Policy: ratelimit.Policy{User: ofRefresh(4), Source: perAddress(3)}})),
		change(clientcfg.ChangePolicy("shop", &clientcfg.ClientPolicy{Policy: policy})),
		change(clientcfg.ChangeTier("gold", &clientcfg.Tier{Policy: ratelimit.Policy{Source: perAddress(3)}})),
		change(clientcfg.ChangeOverride("app", "ada", &clientcfg.Override{User: ofRefresh(4)})),
		change(clientcfg.ChangeCandidate("app", &clientcfg.Candidate{Policy: ratelimit.Policy{Source: perAddress(3)}, Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)})),
	}
	for _, changes := range [][]clientcfg.Change{byHand, written} {
		p, err := after(t, changes...)
		check.OK(t, err)
		set := p.Set()
		check.Equal(t, "names of the settings", set.Settings.Names(), []string{"default.user", "default.source"})
		trial, tried := p.Trial("app")
		tier, _ := set.Tiers.Get("gold")
		check.Equal(t, "tried", []bool{tried, trial.Source, trial.Total}, []bool{true, true, false})
		for where, got := range map[string][]ratelimit.Limit{
			"settings": p.For("any").Source.All(), "policy": p.For("shop").Source.All(), "candidate": trial.Effective.Source.All(),
			"tier": tier.Source,
		} {
			check.Equal(t, "source of the "+where, got, perAddress(3))
		}
		for where, got := range map[string][]ratelimit.Limit{
			"settings": p.For("any").User.All(), "policy": p.For("shop").User.All(),
			"override": p.For("app").For(ratelimit.Key{ClientID: "app", Username: "ada"}).All(),
		} {
			check.Equal(t, "users of the "+where, got, ofRefresh(4))
		}
	}
	_, err := after(t, stored("policies/shop", `{"client":[{"grants":["password"]}]}`))
	requireError(t, err, "clients.shop.client[0].grants: is allowed only in the list user")
	_, err = after(t, stored("tiers/gold", `{"source":[{"requests":5}]}`))
	requireError(t, err, "tiers.gold.source[0].name")
}

// TestTrialOfShared: the limits that a request is tried under if the candidate has lists that the
// client shares with its users.
func TestTrialOfShared(t *testing.T) {
	p := compile(t, clientcfg.PolicySet{}.
		WithPolicy("own", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{Source: perAddress(9)}}).
		WithPolicy("trusted", &clientcfg.ClientPolicy{Policy: ratelimit.Policy{Trusted: true}}).
		WithCandidate("both", &clientcfg.Candidate{Policy: ratelimit.Policy{User: limits(2), Source: perAddress(3)}}).
		WithCandidate("total", &clientcfg.Candidate{Policy: ratelimit.Policy{Total: perAddress(3)}}).
		WithCandidate(clientcfg.GlobalCandidate, &clientcfg.Candidate{Policy: ratelimit.Policy{Source: perAddress(5)}}))
	for _, tt := range []struct {
		client, user       string
		overridden         bool
		own, total, source bool
	}{
		{"any", "ada", false, false, false, true},
		{"any", "", false, false, false, true},
		{"any", "ada", true, false, false, true},
		{"both", "ada", false, true, false, true},
		{"both", "ada", true, false, false, true},
		{"both", "", false, false, false, true},
		{"total", "ada", false, false, true, false},
		{"own", "ada", false, false, false, false},
		{"trusted", "ada", false, false, false, false},
	} {
		trial, _ := p.Trial(tt.client)
		k, e, concerned := trial.Of(tt.user, tt.overridden)
		about := tt.client + " " + tt.user
		check.Equal(t, about+" is concerned", concerned, tt.own || tt.total || tt.source)
		if concerned {
			check.Equal(t, about+": key", k, ratelimit.Key{ClientID: ratelimit.CandidateID(tt.client), Username: tt.user})
			check.Equal(t, about+": lists", []bool{e.User != nil, e.Total != nil, e.Source != nil}, []bool{tt.own, tt.total, tt.source})
		}
	}
}

// TestDigestOfGrants: files that differ in the grants of a limit, or in a source, have different
// digests.
func TestDigestOfGrants(t *testing.T) {
	seen := map[string]bool{}
	for _, policy := range []ratelimit.Policy{{User: limits(4)}, {User: ofRefresh(4)}, {User: limits(4), Source: perAddress(5)}} {
		file := fileSettings()
		file.Clients["shop"] = policy
		p, err := clientcfg.NewPolicySnapshot(file, clientcfg.PolicySet{})
		check.OK(t, err)
		seen[p.BaseDigest()] = true
	}
	check.Equal(t, "digests", len(seen), 3)
}
