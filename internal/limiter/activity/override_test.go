package activity_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
)

// TestOverridesDoNotStartTheFiguresOver: requests under an override count as requests of the
// client, and their denials as denials that enforcement would cause. Peaks ignore them.
func TestOverridesDoNotStartTheFiguresOver(t *testing.T) {
	s := settings(ratelimit.DryRun, 10)
	w := newWorld(t, s)
	e := w.policies.Edit()
	check.OK(t, e.SetOverride("shop", "batch", []ratelimit.Limit{ratelimit.NewLimit("per-minute", 20, time.Minute)}))
	w.policies = e.Compiled()
	for range 3 { // alternating
		w.ask(noon, "shop", "ada", 2)
		w.ask(noon, "shop", "batch", 7)
	}
	k := w.kind(noon)
	if !k.Since.IsZero() || !k.Under(s.Default.User) || k.Limits[0].Count != 6 || k.Over != 1 {
		t.Errorf("of the others is known %+v; want a peak of 6 since ever, and 1 over", k)
	}
	want := activity.Counts{Allowed: 26, WouldDeny: 1}
	if got := w.recorder.Report(noon, 1).Clients[0].Counts; got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
