package app

import (
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/activity"
	"oauth-server/internal/admission"
	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
)

// A changed section overload reaches the gate and the lane, and an unchanged one does not.
func TestOverloadSettingsFollowTheFile(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute+"overload: { mode: dry_run, max_in_flight: 50 }\n")
	check.Equal(t, "mode at the start", f.base.gate.Stats().Mode, ratelimit.DryRun)
	var gate []admission.Settings
	var lane []int
	f.base.overload.setGate = func(s admission.Settings) { gate = append(gate, s) }
	f.base.overload.setLane = func(n int) { lane = append(lane, n) }
	f.write(tenPerMinute + "overload: { mode: dry_run, max_in_flight: 50 }\nlog_users: denied\n")
	check.OK(t, f.look(2))
	check.Equal(t, "after another change", len(gate), 0)
	f.write(tenPerMinute + "overload: { mode: off, target: 20ms, max_store_calls: 9 }\n")
	check.OK(t, f.look(2))
	check.Equal(t, "gate", gate, []admission.Settings{{Mode: ratelimit.Off, Target: 20 * time.Millisecond, MaxInFlight: 10_000}})
	check.Equal(t, "lane", lane, []int{9})
	check.Equal(t, "for the next server in the process", f.next().Overload.MaxStoreCalls, 9)
	f.write(tenPerMinute + "overload: { mode: on }\n")
	check.ErrorSays(t, f.look(2), "overload.mode")
	check.Equal(t, "after a file that is refused", len(gate), 1)
}

// Without a lane the gate alone is set.
func TestOverloadWithoutALane(t *testing.T) {
	var got admission.Settings
	o := overload{setGate: func(s admission.Settings) { got = s }}
	o.set(config.Default().Overload)
	check.Equal(t, "settings", got, admission.DefaultSettings())
}

// Operators see who was shed, and not who hung up.
func TestShedRequestsAreRecorded(t *testing.T) {
	o := overload{activity: activity.New(0, time.Now())}
	for _, outcome := range []admission.Outcome{admission.Shed, admission.Shed, admission.WouldShed, admission.Abandoned, admission.Admitted} {
		o.observe(t.Context(), &admission.Request{ClientID: "shop", Class: admission.Refresh}, outcome)
	}
	o.observe(t.Context(), &admission.Request{Class: admission.Page}, admission.Shed)
	report := o.activity.Report(time.Now(), 10)
	check.Equal(t, "clients", len(report.Clients), 1)
	check.Equal(t, "shed", report.Clients[0].Shed, uint64(2))
	check.Equal(t, "would have been", report.Clients[0].WouldShed, uint64(1))
}
