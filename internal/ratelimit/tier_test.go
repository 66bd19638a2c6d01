package ratelimit

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/strict/fielderr"
)

// TestTierGivesWhatThePolicyLeavesOpen: each value comes from the policy, or else from the tier, or
// else from the settings.
func TestTierGivesWhatThePolicyLeavesOpen(t *testing.T) {
	list := func(n int64) []Limit { return []Limit{perMinute(n)} }
	for _, tc := range []struct {
		name         string
		policy, tier Policy
		user, client int64
		mode         Mode
		hide         bool
	}{
		{"nothing", Policy{}, Policy{}, 100, 100, Enforce, false},
		{"one list of the tier", Policy{}, Policy{User: list(7)}, 7, 100, Enforce, false},
		{"all of the tier", Policy{}, Policy{User: list(7), Client: list(8), Mode: DryRun, HideHeaders: true}, 7, 8, DryRun, true},
		{"lists of both", Policy{User: list(3)}, Policy{User: list(7), Client: list(8)}, 3, 8, Enforce, false},
		{"modes of both", Policy{Mode: Off}, Policy{Mode: DryRun}, 100, 100, Off, false},
		{"headers of the policy", Policy{HideHeaders: true}, Policy{Client: list(8)}, 100, 8, Enforce, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := edited(t, defaults(t), func(e *CompiledEdit) error {
				if err := e.SetPolicy("early", &tc.policy, "gold"); err != nil { // before the tier exists
					return err
				}
				if err := e.SetTier("gold", &tc.tier); err != nil {
					return err
				}
				return e.SetPolicy("late", &tc.policy, "gold")
			})
			for _, id := range []string{"early", "late"} {
				e := p.For(id)
				mustEqual(t, "limit of users of "+id, tc.user, e.User.Rules[0].Requests)
				mustEqual(t, "limit of "+id, tc.client, e.Client.Rules[0].Requests)
				mustEqual(t, "mode of "+id, tc.mode, e.Mode)
				mustEqual(t, "hidden headers of "+id, tc.hide, e.HideHeaders)
				mustEqual(t, "tier of "+id, "gold", e.Tier)
			}
			mustEqual(t, "tier of another client", "", p.For("other").Tier)
		})
	}
}

// TestOverLimitOfTheMostSpecific: it comes from the policy, or else from its tier, or else from the
// default.
func TestOverLimitOfTheMostSpecific(t *testing.T) {
	for _, tc := range []struct{ policy, tier, all, want OverLimit }{
		{"", "", "", OverLimitDeny},
		{"", "", OverLimitReuse, OverLimitReuse},
		{"", OverLimitDeny, OverLimitReuse, OverLimitDeny},
		{"", OverLimitReuse, "", OverLimitReuse},
		{OverLimitDeny, OverLimitReuse, OverLimitReuse, OverLimitDeny},
		{OverLimitReuse, OverLimitDeny, "", OverLimitReuse},
	} {
		p := edited(t, defaults(t), func(e *CompiledEdit) error {
			s := DefaultSettings()
			s.Default.OverLimit = tc.all
			if err := e.SetCommon(s); err != nil {
				return err
			}
			if err := e.SetTier("gold", &Policy{OverLimit: tc.tier}); err != nil {
				return err
			}
			return e.SetPolicy("shop", &Policy{OverLimit: tc.policy}, "gold")
		})
		mustEqual(t, fmt.Sprintf("over limit of %+v", tc), tc.want, p.For("shop").OverLimit)
		mustEqual(t, fmt.Sprintf("over limit without a policy of %+v", tc), cmp.Or(tc.all, OverLimitDeny), p.For("other").OverLimit)
	}
}

// TestReuses: only if there are denials to replace.
func TestReuses(t *testing.T) {
	for _, tc := range []struct {
		e    Effective
		want bool
	}{
		{Effective{Mode: Enforce, OverLimit: OverLimitReuse}, true},
		{Effective{Mode: DryRun, OverLimit: OverLimitReuse}, true},
		{Effective{Mode: Off, OverLimit: OverLimitReuse}, false},
		{Effective{Mode: Enforce, OverLimit: OverLimitReuse, Trusted: true}, false},
		{Effective{Mode: Enforce, OverLimit: OverLimitDeny}, false},
	} {
		mustEqual(t, fmt.Sprintf("Reuses() of %+v", tc.e), tc.want, tc.e.Reuses())
	}
}

// TestTierChangesInOnePlace: a changed tier applies to all its clients, whenever they got it.
// Results from the previous tier stay unchanged.
func TestTierChangesInOnePlace(t *testing.T) {
	old := edited(t, defaults(t), func(e *CompiledEdit) error {
		err := e.SetTier("gold", &Policy{User: []Limit{perMinute(7)}})
		for i := range 10 {
			err = cmp.Or(err, e.SetPolicy(fmt.Sprint("bare", i), &Policy{}, "gold"))
		}
		return cmp.Or(err, e.SetPolicy("own", &Policy{Client: []Limit{perMinute(3)}}, "gold"))
	})
	before := old.For("bare1")
	if before != old.For("bare2") || before == old.For("own") {
		t.Error("clients with nothing but a tier do not share what applies to them")
	}
	next := edited(t, old, func(e *CompiledEdit) error { return e.SetTier("gold", &Policy{User: []Limit{perMinute(9)}}) })
	for _, id := range []string{"bare1", "bare9", "own"} {
		mustEqual(t, "limit of "+id, 9, next.For(id).User.Rules[0].Requests)
		mustEqual(t, "limit of "+id+" before", 7, old.For(id).User.Rules[0].Requests)
	}
	mustEqual(t, "limit of the client with one of its own", 3, next.For("own").Client.Rules[0].Requests)
	if next.For("bare1") != next.For("bare2") {
		t.Error("after a change they do not share it any more")
	}
	// A client that gets its own policy does not affect the others.
	last := edited(t, next, func(e *CompiledEdit) error { return e.SetPolicy("bare1", &Policy{Mode: Off}, "gold") })
	mustEqual(t, "mode of that one", Off, last.For("bare1").Mode)
	mustEqual(t, "mode of another", Enforce, last.For("bare2").Mode)
	mustEqual(t, "clients with a policy", 11, last.Len())
	gone := edited(t, last, func(e *CompiledEdit) error { return e.SetTier("gold", nil) })
	mustEqual(t, "limit without the tier", 100, gone.For("bare2").User.Rules[0].Requests)
	mustEqual(t, "tier without the tier", "", gone.For("bare2").Tier)
}

// TestTierInTheCanaryShare: clients that share one own are in the canary share individually.
func TestTierInTheCanaryShare(t *testing.T) {
	s := DefaultSettings()
	s.CanaryPercent = 50
	whole := defaultsWith(t, s)
	p := edited(t, whole, func(e *CompiledEdit) error {
		err := e.SetTier("gold", &Policy{User: []Limit{perMinute(7)}})
		for i := range 100 {
			err = cmp.Or(err, e.SetPolicy(fmt.Sprint("client-", i), &Policy{}, "gold"))
		}
		return err
	})
	for i := range 100 {
		id := fmt.Sprint("client-", i)
		mustEqual(t, "mode of "+id, whole.For(id).Mode, p.For(id).Mode)
		mustEqual(t, "limit of "+id, 7, p.For(id).User.Rules[0].Requests)
	}
	p = edited(t, p, func(e *CompiledEdit) error { return e.SetTier("gold", &Policy{Mode: Enforce}) })
	for i := range 100 {
		mustEqual(t, "mode of the tier", Enforce, p.For(fmt.Sprint("client-", i)).Mode)
	}
}

// TestTierCostsWhatItChanges: a change of a tier creates nothing for each of its clients.
func TestTierCostsWhatItChanges(t *testing.T) {
	cost := func(clients int) float64 {
		p := edited(t, defaults(t), func(e *CompiledEdit) error {
			err := e.SetTier("gold", &Policy{User: []Limit{perMinute(7)}})
			for i := range clients {
				err = cmp.Or(err, e.SetPolicy(fmt.Sprint("client-", i), &Policy{}, "gold"))
			}
			return err
		})
		tier := &Policy{User: []Limit{perMinute(8)}, Client: []Limit{perMinute(9)}}
		return testing.AllocsPerRun(10, func() { edited(t, p, func(e *CompiledEdit) error { return e.SetTier("gold", tier) }) })
	}
	if few, many := cost(10), cost(20_000); many > 2*few {
		t.Errorf("%v allocations with 10 clients, %v with 20,000", few, many)
	}
}

func TestTierProblems(t *testing.T) {
	p := defaults(t)
	err := p.Edit().SetTier("a b", &Policy{User: []Limit{NewLimit("x", 0, time.Minute)}, Mode: "on", Trusted: true})
	var paths []string
	for _, e := range fielderr.Of(err) {
		paths = append(paths, e.Path)
	}
	mustEqual(t, "problems", `tiers["a b"].user[0].requests tiers["a b"].mode tiers["a b"].trusted`, strings.Join(paths, " "))
}
