package ratelimit

import (
	"testing"
	"time"
)

// TestDeniesIsTakeWithoutCounting asks before every Take, through three windows.
func TestDeniesIsTakeWithoutCounting(t *testing.T) {
	c, k, eff := single(NewLimit("wide", 7, time.Hour), NewLimit("narrow", 3, time.Minute))
	denied, plain := 0, NewCounters(0)
	for now := at(epoch); now.Before(at(epoch).Add(3 * time.Hour)); now = now.Add(7 * time.Second) {
		early, denies := c.Denies(now, k, eff)
		d := c.Take(now, k, eff, 1)
		mustEqual(t, "Take after Denies", plain.Take(now, k, eff, 1).Outcome, d.Outcome)
		mustEqual(t, "Denies", d.Outcome == Denied, denies)
		if denies {
			mustEqual(t, "the decision of Denies", d, early)
			denied++
		}
	}
	if denied == 0 {
		t.Fatal("no request was denied")
	}
}

func TestDeniesOnlyWhatIsEnforced(t *testing.T) {
	c, k, eff := single(NewLimit("one", 1, time.Minute))
	_, denies := c.Denies(at(epoch), k, eff)
	mustEqual(t, "Denies of a key never seen", false, denies)
	mustEqual(t, "counters made for it", 0, len(c.Usage(at(epoch), k)))
	c.Take(at(epoch), k, eff, 1)
	for name, tc := range map[string]struct {
		edit func(*Effective)
		want bool
	}{
		"enforced":       {func(*Effective) {}, true},
		"dry-run":        {func(e *Effective) { e.Mode = DryRun }, false},
		"off":            {func(e *Effective) { e.Mode = Off }, false},
		"trusted":        {func(e *Effective) { e.Trusted = true }, false},
		"another limit":  {func(e *Effective) { e.User = newLimits([]Limit{NewLimit("one", 2, time.Minute)}) }, false},
		"headers hidden": {func(e *Effective) { e.HideHeaders = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			other := *eff
			tc.edit(&other)
			d, denies := c.Denies(at(epoch), k, &other)
			mustEqual(t, "Denies", tc.want, denies)
			_, header := d.Headers()
			mustEqual(t, "a RateLimit field", tc.want && !other.HideHeaders, header != "")
		})
	}
}
