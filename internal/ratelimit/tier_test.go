package ratelimit

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
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
		{"all of the tier", Policy{}, Policy{User: list(7), Client: list(8), Mode: DryRun, HideHeaders: new(true)}, 7, 8, DryRun, true},
		{"lists of both", Policy{User: list(3)}, Policy{User: list(7), Client: list(8)}, 3, 8, Enforce, false},
		{"modes of both", Policy{Mode: Off}, Policy{Mode: DryRun}, 100, 100, Off, false},
		{"headers of the policy", Policy{HideHeaders: new(true)}, Policy{Client: list(8)}, 100, 8, Enforce, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := edited(t, defaults(t), func(e *CompiledEdit) error {
				early := e.SetPolicy("early", &tc.policy, "gold") // before the tier exists
				return cmp.Or(early, e.SetTier("gold", &tc.tier), e.SetPolicy("late", &tc.policy, "gold"))
			})
			for _, id := range []string{"early", "late"} {
				e := p.For(id)
				check.Equal(t, "limit of users of "+id, e.User.Rules[0].Requests, tc.user)
				check.Equal(t, "limit of "+id, e.Client.Rules[0].Requests, tc.client)
				check.Equal(t, "mode of "+id, e.Mode, tc.mode)
				check.Equal(t, "hidden headers of "+id, e.HideHeaders, tc.hide)
				check.Equal(t, "tier of "+id, e.Tier, "gold")
			}
			check.Equal(t, "tier of another client", p.For("other").Tier, "")
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
			return cmp.Or(e.SetCommon(s), e.SetTier("gold", &Policy{OverLimit: tc.tier}), e.SetPolicy("shop", &Policy{OverLimit: tc.policy}, "gold"))
		})
		check.Equal(t, fmt.Sprintf("over limit of %+v", tc), p.For("shop").OverLimit, tc.want)
		check.Equal(t, fmt.Sprintf("over limit without a policy of %+v", tc), p.For("other").OverLimit, cmp.Or(tc.all, OverLimitDeny))
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
		check.Equal(t, fmt.Sprintf("Reuses() of %+v", tc.e), tc.e.Reuses(), tc.want)
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
	next := edited(t, old, func(e *CompiledEdit) error { return e.SetTier("gold", &Policy{User: []Limit{perMinute(9)}}) })
	for _, id := range []string{"bare1", "bare9", "own"} {
		check.Equal(t, "limit of "+id, next.For(id).User.Rules[0].Requests, 9)
		check.Equal(t, "limit of "+id+" before", old.For(id).User.Rules[0].Requests, 7)
	}
	check.Equal(t, "limit of the client with one of its own", next.For("own").Client.Rules[0].Requests, 3)
	// A client that gets its own policy does not affect the others.
	last := edited(t, next, func(e *CompiledEdit) error { return e.SetPolicy("bare1", &Policy{Mode: Off}, "gold") })
	check.Equal(t, "mode of that one", last.For("bare1").Mode, Off)
	check.Equal(t, "mode of another", last.For("bare2").Mode, Enforce)
	check.Equal(t, "clients with a policy", last.Len(), 11)
	gone := edited(t, last, func(e *CompiledEdit) error { return e.SetTier("gold", nil) })
	check.Equal(t, "limit without the tier", gone.For("bare2").User.Rules[0].Requests, 100)
	check.Equal(t, "tier without the tier", gone.For("bare2").Tier, "")
}

// TestTierInTheCanaryShare: clients of one tier are in the canary share individually.
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
		check.Equal(t, "mode of "+id, p.For(id).Mode, whole.For(id).Mode)
		check.Equal(t, "limit of "+id, p.For(id).User.Rules[0].Requests, 7)
	}
	p = edited(t, p, func(e *CompiledEdit) error { return e.SetTier("gold", &Policy{Mode: Enforce}) })
	for i := range 100 {
		check.Equal(t, "mode of the tier", p.For(fmt.Sprint("client-", i)).Mode, Enforce)
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
	check.Equal(t, "problems", strings.Join(paths, " "), `tiers["a b"].user[0].requests tiers["a b"].mode tiers["a b"].trusted`)
}
