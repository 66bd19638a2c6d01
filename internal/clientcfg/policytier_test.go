package clientcfg_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/lockout"
	"oauth-server/internal/ratelimit"
)

// users returns the limit of a user of a client, or of all users if the username has no override.
func users(p *clientcfg.PolicySnapshot, clientID, username string) int64 {
	return p.For(clientID).For(ratelimit.Key{ClientID: clientID, Username: username}).All()[0].Requests
}

// TestTiersAreChecked: a policy cannot name a missing tier, and a tier in use cannot be removed. An
// entry is checked by its result, whatever the order of its changes.
func TestTiersAreChecked(t *testing.T) {
	tier, named := stored("tiers/gold", `{"user":[{"requests":9}]}`), stored("policies/shop", `{"tier":"gold"}`)
	noTier, unnamed := stored("tiers/gold", "null"), stored("policies/shop", "null")
	for _, tt := range []struct {
		name    string
		changes []clientcfg.Change
		want    string
		user    int64
	}{
		{"another one that is not there", []clientcfg.Change{stored("policies/app", `{"tier":"silver"}`)}, `clients.app.tier: tier "silver" does not exist`, 0},
		{"removed", []clientcfg.Change{noTier}, "tiers.gold: is the tier of 1 client: shop; first give them another one, or none", 0},
		{"removed with the policy", []clientcfg.Change{noTier, unnamed}, "", 7},
		{"removed with the policy, in the other order", []clientcfg.Change{unnamed, noTier}, "", 7},
		{"removed, and made again", []clientcfg.Change{noTier, stored("tiers/gold", `{"user":[{"requests":3}]}`)}, "", 3},
		{"made and named at once", []clientcfg.Change{stored("policies/shop", `{"tier":"new"}`), stored("tiers/new", `{"user":[{"requests":2}]}`)}, "", 2},
		{"changed", []clientcfg.Change{stored("tiers/gold", `{"user":[{"requests":4}]}`)}, "", 4},
		{"invalid", []clientcfg.Change{stored("tiers/gold", `{"user":[{"requests":0}],"mode":"on"}`)}, "tiers.gold.mode", 0},
		{"of a name that cannot be", []clientcfg.Change{stored("tiers/a b", `{}`)}, "not a visible ASCII character", 0},
		{"of a longer name", []clientcfg.Change{stored("tiers/"+strings.Repeat("a", 65), `{}`)}, "1 to 64 characters", 0},
		{"with a number that may wait and no wait", []clientcfg.Change{stored("tiers/gold", `{"max_waiting":3}`)}, "tiers.gold.max_waiting", 0},
		{"with a wait that is none", []clientcfg.Change{stored("tiers/gold", `{"max_wait":"soon"}`)}, "is unreadable", 0},
		{"with an over_limit that is none", []clientcfg.Change{stored("tiers/gold", `{"over_limit":"wait"}`)}, "tiers.gold.over_limit", 0},
		{"with a criticality that is none", []clientcfg.Change{stored("tiers/gold", `{"criticality":"high"}`)}, `criticality: "high" is not one of`, 0},
		{"with a field of a newer release", []clientcfg.Change{stored("tiers/gold", `{"burst":5}`)}, "is unreadable", 0},
		{"that is trusted", []clientcfg.Change{stored("tiers/gold", `{"trusted":true}`)}, "tiers/gold: has fields that it cannot have", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := compile(t, clientcfg.PolicySet{}).Apply(entry(1, tier, named))
			check.OK(t, err)
			check.Equal(t, "limit under the tier", users(p, "shop", "ada"), 9)
			next, err := p.Apply(entry(2, tt.changes...))
			requireError(t, err, tt.want)
			if err == nil {
				check.Equal(t, "limit", users(next, "shop", "ada"), tt.user)
			}
			check.Equal(t, "limit before", users(p, "shop", "ada"), 9)
		})
	}
}

// TestTierOfManyClients: the error lists some of the clients, and their number.
func TestTierOfManyClients(t *testing.T) {
	set := clientcfg.PolicySet{}.WithTier("gold", &clientcfg.Value{})
	for i := range 12 {
		set = set.WithPolicy(fmt.Sprintf("c%02d", i), &clientcfg.Value{Tier: "gold"})
	}
	p := compile(t, set)
	_, err := p.Apply(entry(1, stored("tiers/gold", "null")))
	requireError(t, err, "is the tier of 12 clients: c00, c01, c02, c03, c04 and 7 more; first give them another one")
	set = p.Set()
	check.Equal(t, "uses", set.TierUses(), map[string]int{"gold": 12})
	ids, all := p.Concerned([]clientcfg.Change{{Target: "tiers/gold"}, {Target: "policies/x"}, {Target: "overrides/y ada"}, {Target: "clients/z/counters"}})
	check.Equal(t, "concerned", fmt.Sprint(len(ids), ids[:4], all), "15 [x y  c00] false")
	if _, all = p.Concerned([]clientcfg.Change{{Target: "settings"}}); !all {
		t.Error("the settings do not concern all clients")
	}
}

// TestOverridesAreChecked: overrides are validated, and apply to one user.
func TestOverridesAreChecked(t *testing.T) {
	for _, tt := range []struct {
		target, value, want string
	}{
		{"overrides/shop ada", `{"user":[{"requests":3}],"note":"x"}`, ""},
		{"overrides/shop Ada Lovelace", `{"user":[{"requests":3}]}`, ""},
		{"overrides/shop ada", `{"user":[]}`, `overrides["shop ada"].user: needs at least one limit`},
		{"overrides/shop ada", `{"user":[{"requests":0}]}`, `overrides["shop ada"].user[0].requests`},
		{"overrides/shop ada", `{"user":[{"requests":1}],"until":1}`, "is unreadable"},
		{"overrides/shop", `{"user":[{"requests":3}]}`, "is not a target"},
		{"overrides/ ada", `{"user":[{"requests":3}]}`, "is not a target"},
		{"overrides/shop ", `{"user":[{"requests":3}]}`, "is not a target"},
	} {
		p, err := compile(t, clientcfg.PolicySet{}).Apply(entry(1, stored(tt.target, tt.value)))
		requireError(t, err, tt.want)
		if err != nil {
			continue
		}
		id, username, _ := clientcfg.OverrideOf(tt.target)
		check.Equal(t, "target", clientcfg.OverrideTarget(id, username), tt.target)
		check.Equal(t, "limit of that user", users(p, id, username), 3)
		check.Equal(t, "limit of another", users(p, id, "bob"), 7)
		check.Equal(t, "clients with a policy", p.Clients(10), []string{"shop"})
		p, err = p.Apply(entry(2, stored(tt.target, "null")))
		check.OK(t, err)
		check.Equal(t, "limit of that user afterwards", users(p, id, username), 7)
		set := p.Set()
		check.Equal(t, "overrides afterwards", set.Overrides.Len(), 0)
	}
}

// TestTiersAndOverridesAreBounded checks the maximum numbers of both.
func TestTiersAndOverridesAreBounded(t *testing.T) {
	var set clientcfg.PolicySet
	e := set.Tiers.Edit()
	for i := range clientcfg.MaxTiers {
		e.Set(fmt.Sprint(i), clientcfg.Value{})
	}
	set.Tiers = e.Map()
	o := set.Overrides.Edit()
	for i := range clientcfg.MaxOverrides {
		o.Set(clientcfg.OverrideKey("shop", fmt.Sprint(i)), clientcfg.Value{Policy: ratelimit.Policy{User: limits(5)}})
	}
	set.Overrides = o.Map()
	p := compile(t, set)
	_, err := p.Apply(entry(1, stored("tiers/x", "{}")))
	requireError(t, err, "1001 tiers exceed the maximum of 1000")
	_, err = p.Apply(entry(1, stored("overrides/app ada", `{"user":[{"requests":3}]}`)))
	requireError(t, err, "100001 overrides exceed the maximum of 100000")
	_, err = p.Apply(entry(1, stored("overrides/shop 7", "null"), stored("overrides/app ada", `{"user":[{"requests":3}]}`)))
	check.OK(t, err)
}

// TestStartWithoutATier: an unusable tier has its previous value, or is missing. Policies that name
// it are in force without it. A release that does not know tiers does the same with each such
// target.
func TestStartWithoutATier(t *testing.T) {
	for _, tt := range []struct {
		name, before string
		users        int64
		leftOut      int
	}{
		{"with one before", `{"user":[{"requests":8}]}`, 8, 1},
		{"without", "null", 100, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := newPolicyStore(t)
			bad := stored("tiers/gold", `{"user":[{"requests":0}]}`)
			bad.Before = []byte(tt.before)
			store.put(bad, stored("policies/web", `{"tier":"gold","client":[{"requests":6}]}`), stored("overrides/web ada", `{"user":[{"requests":3}]}`))
			s := newPolicySource(t, store)
			p := s.Snapshot()
			check.Equal(t, "limit of users", users(p, "web", "bob"), tt.users)
			check.Equal(t, "limit of ada", users(p, "web", "ada"), 3)
			check.Equal(t, "limit of the client", users(p, "web", ""), 6)
			check.Equal(t, "left out", p.LeftOut(), tt.leftOut)
			store.put(stored("tiers/gold", `{"user":[{"requests":5}]}`))
			check.OK(t, s.Refresh(t.Context()))
			check.Equal(t, "limit of users after it was mended", users(s.Snapshot(), "web", "bob"), 5)
			check.Equal(t, "left out after it was mended", s.Snapshot().LeftOut(), 0)
		})
	}
}

// TestChangeOfATierIsOneEntry: the entry has the previous values of tiers and overrides.
func TestChangeOfATierIsOneEntry(t *testing.T) {
	store := newPolicyStore(t)
	s := newPolicySource(t, store)
	for i := range int64(2) {
		tier, err := clientcfg.SetTarget("tiers/gold", &clientcfg.Value{Policy: ratelimit.Policy{User: limits(3 + i)}, Changed: 77})
		check.OK(t, err)
		own, err := clientcfg.SetTarget(clientcfg.OverrideTarget("shop", "ada"), &clientcfg.Value{Policy: ratelimit.Policy{User: limits(5 + i)}, Changed: 77})
		check.OK(t, err)
		_, err = s.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
			return clientcfg.Event{Action: "update", Changes: []clientcfg.Change{tier, own}}, nil
		})
		check.OK(t, err)
	}
	first, second := store.trail()[0].Changes, store.trail()[1].Changes
	for i := range first {
		check.Equal(t, "before the first", string(first[i].Before), "null")
		check.Equal(t, "before the second", string(second[i].Before), string(first[i].After))
		if strings.Contains(string(second[i].After), "changed") {
			t.Errorf("the entry says what its version is: %s", second[i].After)
		}
	}
	set := s.Snapshot().Set()
	tier, _ := set.Tiers.Get("gold")
	own, _ := set.Overrides.Get("shop ada")
	check.Equal(t, "versions", []int64{tier.Changed, own.Changed}, []int64{2, 2})
}

// TestTiersAndOverridesLockOut: tiers and overrides can lock out the operators that they apply to.
func TestTiersAndOverridesLockOut(t *testing.T) {
	slow := []ratelimit.Limit{ratelimit.NewLimit("daily", 1, 24*time.Hour)}
	signsIn := operator(func(c *clientcfg.Client) { c.Grants = []clientcfg.Grant{clientcfg.AuthorizationCode} })
	alone := operator(func(*clientcfg.Client) {})
	override := clientcfg.PolicySet{}.WithOverride("ops", "ada", &clientcfg.Value{Policy: ratelimit.Policy{User: slow}})
	of := func(g ratelimit.Grants) clientcfg.PolicySet {
		some := slices.Clone(slow)
		some[0].Grants = g
		return clientcfg.PolicySet{}.WithOverride("ops", "ada", &clientcfg.Value{Policy: ratelimit.Policy{User: some}}).
			WithPolicy("ops", &clientcfg.Value{Policy: ratelimit.Policy{User: some}})
	}
	tier := clientcfg.PolicySet{}.WithTier("t", &clientcfg.Value{Policy: ratelimit.Policy{Client: slow}}).WithPolicy("ops", &clientcfg.Value{Tier: "t"})
	for _, tt := range []struct {
		name string
		c    *clientcfg.Client
		set  clientcfg.PolicySet
		want string
	}{
		{"an override", signsIn, override, `would lock out the user "ada" of the admin client "ops"`},
		{"an override, where no user signs in", alone, override, ""},
		{"an override, where it is not enforced", signsIn, override.WithPolicy("ops", &clientcfg.Value{Policy: ratelimit.Policy{Mode: ratelimit.DryRun}}), ""},
		{"grants that the client may not use", signsIn, of(ratelimit.GrantPassword | ratelimit.GrantRefresh), ""},
		{"a grant that it may use", signsIn, of(ratelimit.GrantPassword | ratelimit.GrantCode), `would lock out the admin client "ops"`},
		{"a tier", alone, tier, `would lock out the admin client "ops"`},
	} {
		t.Run(tt.name, func(t *testing.T) { requireError(t, lockout.By(compile(t, tt.set), tt.c), tt.want) })
	}
}
