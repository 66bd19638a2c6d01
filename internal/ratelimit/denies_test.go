package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDeniesIsTakeWithoutCounting asks before every Take, through three windows.
func TestDeniesIsTakeWithoutCounting(t *testing.T) {
	c, k, eff := single(NewLimit("wide", 7, time.Hour), NewLimit("narrow", 3, time.Minute))
	asked, plain := 0, NewCounters(0)
	for now := at(epoch); now.Before(at(epoch).Add(3 * time.Hour)); now = now.Add(7 * time.Second) {
		early, denies := c.Denies(now, k, eff)
		d := c.Take(now, k, eff, 1)
		require.Equal(t, plain.Take(now, k, eff, 1).Outcome, d.Outcome, "asking changed something")
		require.Equal(t, d.Outcome == Denied, denies)
		if denies {
			require.Equal(t, d, early)
			asked++
		}
	}
	require.Positive(t, asked)
}

func TestDeniesOnlyWhatIsEnforced(t *testing.T) {
	c, k, eff := single(NewLimit("one", 1, time.Minute))
	_, denies := c.Denies(at(epoch), k, eff)
	require.False(t, denies, "a key that was never seen")
	require.Empty(t, c.Usage(at(epoch), k), "and no counter is made for it")
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
			require.Equal(t, tc.want, denies)
			_, header := d.Headers()
			require.Equal(t, tc.want && !other.HideHeaders, header != "")
		})
	}
}
