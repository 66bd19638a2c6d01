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
		mustEqual(t, "name", name, c.String())
		mustEqual(t, "value of "+name, before-1, c)
		before = c
	}
	mustEqual(t, "the lowest", CriticalityUnset, before)
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
		mustEqual(t, "error of "+text, want, fmt.Sprint(err))
		mustEqual(t, "value of "+text, CriticalityUnset, c)
	}
	for _, c := range []Criticality{-1, CriticalPlus + 1} {
		_, err := c.MarshalText()
		mustEqual(t, "error of a value", fmt.Sprintf(`"%v" %s`, c, known), fmt.Sprint(err))
		p := Policy{Criticality: c}
		mustEqual(t, "error of a policy", "criticality: "+err.Error(), fmt.Sprint(p.Validate()))
	}
}

// TestCriticalityAsJSON: a policy has it as a string, and omits it if it is not set.
func TestCriticalityAsJSON(t *testing.T) {
	for c, want := range map[Criticality]string{CriticalityUnset: `{}`, SheddablePlus: `{"criticality":"sheddable_plus"}`, CriticalPlus: `{"criticality":"critical_plus"}`} {
		b, err := json.Marshal(Policy{Criticality: c})
		check.OK(t, err)
		mustEqual(t, "as JSON", want, string(b))
		var p Policy
		check.OK(t, json.Unmarshal(b, &p))
		mustEqual(t, "read again", c, p.Criticality)
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
			mustEqual(t, "that"+where, tc.want, p.For("shop").Criticality)
			mustEqual(t, "that, trusted,"+where, tc.want, p.For("trusted").Criticality)
			mustEqual(t, "without one of its own"+where, cmp.Or(tc.tier, tc.all), p.For("bare").Criticality)
			mustEqual(t, "without a tier"+where, cmp.Or(tc.policy, tc.all), p.For("untiered").Criticality)
			for _, other := range []string{"other", "another", "one more", "and one"} { // inside and outside the canary share
				mustEqual(t, "without a policy"+where, tc.all, p.For(other).Criticality)
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
		mustEqual(t, "allocations for "+id, 0, testing.AllocsPerRun(100, func() { sum += p.For(id).Criticality }))
	}
	mustEqual(t, "something was read", true, sum != 0)
}
