package activity_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
)

// ofGrants returns a world with decisions that show some limits of a list, as the decisions for one
// grant do.
func ofGrants(t *testing.T, list []ratelimit.Limit) (w *world, ask func(at time.Time, user string, n int, shown ...int)) {
	t.Helper()
	w = newWorld(t, settings(ratelimit.DryRun, 1))
	return w, func(at time.Time, user string, n int, shown ...int) {
		t.Helper()
		limits := make([]ratelimit.Limit, len(shown))
		for i, of := range shown {
			limits[i] = list[of]
		}
		s := settings(ratelimit.DryRun, 1)
		s.Default.User = limits
		p, err := ratelimit.Compile(s)
		check.OK(t, err)
		w.policies = p
		w.ask(at, "shop", user, n)
	}
}

func grantLimits() []ratelimit.Limit {
	list := make([]ratelimit.Limit, 4)
	for i, name := range []string{"codes", "renewals", "all", "some"} {
		list[i] = ratelimit.NewLimit(name, 5, time.Minute)
	}
	list[0].Grants, list[1].Grants = ratelimit.GrantCode, ratelimit.GrantRefresh
	list[3].Grants = ratelimit.GrantRefresh | ratelimit.GrantPassword
	return list
}

// peaks returns the counts of a report by the names of the limits.
func peaks(k activity.KindReport) map[string]int64 {
	found := map[string]int64{}
	for _, p := range k.Limits {
		found[p.Limit.Name] = p.Count
	}
	return found
}

// TestFiguresOfAllGrants: requests of different grants, which show different limits of the same
// list, do not count as a change of the list, in any order and in any process.
func TestFiguresOfAllGrants(t *testing.T) {
	list := grantLimits()
	w, ask := ofGrants(t, list)
	ask(noon, "ada", 1, 2)
	ask(noon, "bob", 2, 1, 2, 3)
	ask(noon, "carl", 3, 0, 2)
	ask(noon, "dora", 7, 2, 3)
	ask(noon, "ada", 1, 2)
	k := w.kind(noon)
	check.Equal(t, "peaks", peaks(k), map[string]int64{"codes": 3, "renewals": 2, "all": 6, "some": 6})
	check.Equal(t, "since ever, over", []any{k.Since.IsZero(), k.Over}, []any{true, uint64(2)})
	check.Equal(t, "is under the list", k.Under(list), true)
	check.Equal(t, "is under another list", k.Under(list[:3]), false)
	check.Equal(t, "is under one with another limit for all", k.Under(append([]ratelimit.Limit{ratelimit.NewLimit("more", 9, time.Hour)}, list...)), false)
	changed := grantLimits()
	changed[1].Requests = 4
	check.Equal(t, "is under a changed list", k.Under(changed), false)
	changed = grantLimits()
	changed[1].Grants = 0
	check.Equal(t, "is under other grants", k.Under(changed), false)

	other, askOther := ofGrants(t, list)
	askOther(noon, "ada", 4, 0, 2)
	merged := activity.Merge(throughJSON(t, other.recorder.Report(noon, 1)), throughJSON(t, w.recorder.Report(noon, 1)))
	k, _ = merged.Clients[0].Kind(activity.User)
	check.Equal(t, "peaks of both", peaks(k), map[string]int64{"codes": 4, "renewals": 2, "all": 6, "some": 6})
	check.Equal(t, "both are under the list", k.Under(list), true)
}

// TestGrantThatAsksNoMore: a limit that requests no longer show is forgotten. A limit with other
// grants is a different limit.
func TestGrantThatAsksNoMore(t *testing.T) {
	list := grantLimits()
	w, ask := ofGrants(t, list)
	ask(noon, "ada", 2, 0, 2)
	later := noon.Add(11 * time.Minute)
	ask(later, "ada", 1, 2)
	k := w.kind(later)
	check.Equal(t, "peaks", peaks(k), map[string]int64{"all": 1})
	check.Equal(t, "is under the list", k.Under(list), true)

	list[0].Grants = ratelimit.GrantPassword
	ask(later, "ada", 3, 0, 2)
	k = w.kind(later)
	check.Equal(t, "peaks of another limit", peaks(k), map[string]int64{"codes": 3, "all": 4})
	check.Equal(t, "since", k.Since, later)

	list[0].Grants = ratelimit.GrantRefresh
	ask(later.Add(time.Second), "bob", 1, 0, 2)
	k = w.kind(later.Add(time.Second))
	check.Equal(t, "peaks of yet another", peaks(k), map[string]int64{"codes": 1, "all": 4})
}

// TestLimitThatEveryRequestShowed: if it is missing, the list has changed.
func TestLimitThatEveryRequestShowed(t *testing.T) {
	list := grantLimits()
	list[0].Grants = 0
	w, ask := ofGrants(t, list)
	ask(noon, "ada", 2, 0, 1, 2)
	ask(noon, "ada", 1, 1, 2)
	k := w.kind(noon)
	check.Equal(t, "peaks without the first", peaks(k), map[string]int64{"renewals": 3, "all": 3})
	check.Equal(t, "since", k.Since, noon)
	ask(noon, "ada", 1, 1)
	check.Equal(t, "peaks without the last", peaks(w.kind(noon)), map[string]int64{"renewals": 4})
}

func TestCovers(t *testing.T) {
	const code, refresh = ratelimit.GrantCode, ratelimit.GrantRefresh
	for _, tt := range []struct {
		a, b ratelimit.Grants
		want bool
	}{
		{0, 0, true},
		{0, code, true},
		{code, 0, false},
		{code, code, true},
		{code, refresh, false},
		{code | refresh, code, true},
		{code, code | refresh, false},
	} {
		check.Equal(t, "covers", activity.Covers(ratelimit.Limit{Grants: tt.a}, ratelimit.Limit{Grants: tt.b}), tt.want)
	}
}
