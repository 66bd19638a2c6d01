package ratelimit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"

	"oauth-server/internal/check"
)

// TestCriticalityNames: each name parses to its value, and names and values have the same order.
func TestCriticalityNames(t *testing.T) {
	names := CriticalityNames()
	same(t, "names", []string{"critical_plus", "critical", "sheddable_plus", "sheddable"}, names)
	before := CriticalPlus + 1
	for _, name := range append(names, "") {
		c, err := ParseCriticality(name)
		check.OK(t, err)
		check.Equal(t, "name", c.String(), name)
		check.Equal(t, "value of "+name, c, before-1)
		before = c
	}
	check.Equal(t, "the lowest", before, CriticalityUnset)
	CriticalityNames()[0] = "x"
	same(t, "names, after one was changed", names, CriticalityNames())
}

func TestCriticalityThatIsNone(t *testing.T) {
	const known = `is not one of "critical_plus", "critical", "sheddable_plus", "sheddable"`
	for text, want := range map[string]string{
		"high":                   `"high" ` + known,
		"Critical":               `"Critical" ` + known,
		"critical\n":             `"critical\n" ` + known,
		"3":                      `"3" ` + known,
		fmt.Sprintf("%0100d", 1): `"0000000000000000000000000000000000000000" ` + known,
	} {
		c, err := ParseCriticality(text)
		check.Equal(t, "error of "+text, fmt.Sprint(err), want)
		check.Equal(t, "value of "+text, c, CriticalityUnset)
	}
	for _, c := range []Criticality{-1, CriticalPlus + 1} {
		_, err := c.MarshalText()
		check.Equal(t, "error of a value", fmt.Sprint(err), fmt.Sprintf(`"%v" %s`, c, known))
		p := Policy{Criticality: c}
		check.Equal(t, "error of a policy", fmt.Sprint(p.Validate()), "criticality: "+err.Error())
	}
}

// TestCriticalityAsJSON: a policy has it as a string, and omits it if it is not set.
func TestCriticalityAsJSON(t *testing.T) {
	for c, want := range map[Criticality]string{CriticalityUnset: `{}`, SheddablePlus: `{"criticality":"sheddable_plus"}`, CriticalPlus: `{"criticality":"critical_plus"}`} {
		b, err := json.Marshal(Policy{Criticality: c})
		check.OK(t, err)
		check.Equal(t, "as JSON", string(b), want)
		var p Policy
		check.OK(t, json.Unmarshal(b, &p))
		check.Equal(t, "read again", p.Criticality, c)
	}
	if err := json.Unmarshal([]byte(`{"criticality":"high"}`), &Policy{}); err == nil {
		t.Fatal("an unknown name was read")
	}
}

// TestCriticalityOfTheMostSpecific: it comes from the policy, or else from its tier, or else from
// the default. This holds in every mode, for clients with their own lists or only a tier, and for
// trusted clients.
func TestCriticalityOfTheMostSpecific(t *testing.T) {
	for _, tc := range []struct{ policy, tier, all, want Criticality }{
		{0, 0, 0, CriticalityUnset},
		{0, 0, Sheddable, Sheddable},
		{0, SheddablePlus, CriticalPlus, SheddablePlus},
		{0, Critical, 0, Critical},
		{Sheddable, CriticalPlus, CriticalPlus, Sheddable},
		{CriticalPlus, Sheddable, 0, CriticalPlus},
	} {
		for _, mode := range []Mode{Enforce, DryRun, Off} {
			p := edited(t, defaults(t), func(e *CompiledEdit) error {
				s := DefaultSettings()
				s.Mode, s.CanaryPercent, s.Default.Criticality = mode, 50, tc.all
				return cmp.Or(e.SetCommon(s), e.SetTier("gold", &Policy{Criticality: tc.tier}),
					e.SetPolicy("shop", &Policy{Criticality: tc.policy}, "gold"),
					e.SetPolicy("trusted", &Policy{Criticality: tc.policy, Trusted: true}, "gold"),
					e.SetPolicy("bare", &Policy{}, "gold"),
					e.SetPolicy("untiered", &Policy{Criticality: tc.policy}, ""))
			})
			where := fmt.Sprintf(" of %+v in %s", tc, mode)
			check.Equal(t, "that"+where, p.For("shop").Criticality, tc.want)
			check.Equal(t, "that, trusted,"+where, p.For("trusted").Criticality, tc.want)
			check.Equal(t, "without one of its own"+where, p.For("bare").Criticality, cmp.Or(tc.tier, tc.all))
			check.Equal(t, "without a tier"+where, p.For("untiered").Criticality, cmp.Or(tc.policy, tc.all))
			for _, other := range []string{"other", "another", "one more", "and one"} { // inside and outside the canary share
				check.Equal(t, "without a policy"+where, p.For(other).Criticality, tc.all)
			}
		}
	}
}

// TestCriticalityIsReadWithoutAllocation: it is read before every request.
func TestCriticalityIsReadWithoutAllocation(t *testing.T) {
	s := DefaultSettings()
	s.Clients = map[string]Policy{"shop": {Criticality: Critical}, "app": {Trusted: true, Criticality: Sheddable}}
	p := defaultsWith(t, s)
	sum := Criticality(0)
	for _, id := range []string{"shop", "app", "other"} {
		check.Equal(t, "allocations for "+id, testing.AllocsPerRun(100, func() { sum += p.For(id).Criticality }), 0)
	}
	check.Equal(t, "something was read", sum != 0, true)
}
