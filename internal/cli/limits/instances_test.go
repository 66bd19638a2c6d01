package limits

import (
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
)

// TestInstancesThatDisagree: which they are, and what is wrong with the file of one.
func TestInstancesThatDisagree(t *testing.T) {
	l := &limits{API: connect.API{Env: &command.Env{}}}
	instance := func(id, file string) adminapi.Instance {
		i := adminapi.Instance{ID: id}
		i.Policies.File = file
		return i
	}
	a, b, c := instance("a", "0123456789abcdef"), instance("b", "fedcba9876543210"), instance("c", "0123456789abcdef")
	check.Equal(t, "of those that agree", disagreement([]adminapi.Instance{a, c}), "")
	check.Equal(t, "of none", disagreement(nil), "")
	check.Equal(t, "of those that differ", disagreement([]adminapi.Instance{a, b, c}),
		"The limits in the configuration files differ: 01234567 at a, c; fedcba98 at b.")
	coded := func(i adminapi.Instance, code string) adminapi.Instance {
		i.File.ErrorCode = code
		return i
	}
	codes := "The values of rate_limit.error_code in the configuration files differ: slow_down at c; temporarily_unavailable at a."
	check.Equal(t, "in another code", disagreement([]adminapi.Instance{coded(a, "temporarily_unavailable"), coded(c, "slow_down")}), codes)
	check.Equal(t, "in both", disagreement([]adminapi.Instance{coded(a, "temporarily_unavailable"), coded(b, "slow_down"), coded(c, "slow_down")}),
		"The limits in the configuration files differ: 01234567 at a, c; fedcba98 at b.\n"+
			"The values of rate_limit.error_code in the configuration files differ: slow_down at b, c; temporarily_unavailable at a.")

	check.Equal(t, "in use", l.fileState(a), "01234567")
	a.File.RestartNeeded = []string{"listen", "issuer"}
	check.Equal(t, "in part", l.fileState(a), "01234567, restart needed for listen, issuer")
	a.File.Error = "rate_limit.mode: must be enforce, dry_run or off (x.yaml:3) (and 1 more)"
	check.Equal(t, "refused", l.fileState(a), "01234567, the newest is invalid: rate_limit.mode: must be enforce, dry_run or off (x.yaml:3) (and 1 more)")
}

func TestInstanceRow(t *testing.T) {
	started := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	for _, tt := range []struct {
		name string
		sync *adminapi.SyncState
		want []string // of the last two columns
	}{
		{"counts of its own", nil, []string{"its own", "-"}},
		{"well", &adminapi.SyncState{Keys: 10, Dirty: 2, WallOffset: 0.3, StoreOffset: -0.1}, []string{"10, 2 not shared yet", "ok"}},
		{"a slow call", &adminapi.SyncState{Outage: true}, []string{"0, 0 not shared yet, on_outage applies", "ok"}},
		{"the store fails", &adminapi.SyncState{Degraded: true, Outage: true}, []string{"0, 0 not shared yet, the store fails, on_outage applies", "ok"}},
		{"stepped", &adminapi.SyncState{ClockAlone: "wall", WallOffset: 300.04, StoreOffset: 0.2}, []string{"0, 0 not shared yet", "wall +5m0s"}},
		{"a store that lies", &adminapi.SyncState{ClockAlone: "store", StoreOffset: -90.25}, []string{"0, 0 not shared yet", "store -1m30.3s"}},
		{"resumed", &adminapi.SyncState{ClockAlone: "process", WallOffset: 600, StoreOffset: 601}, []string{"0, 0 not shared yet", "wall +10m0s, store +10m1s"}},
		{"none agree", &adminapi.SyncState{ClockAlone: "all", WallOffset: 2, StoreOffset: -2}, []string{"0, 0 not shared yet", "wall +2s, store -2s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := adminapi.Instance{ID: "i-1", Host: "h", Version: "v1", StartedAt: started, Self: true, Sync: tt.sync}
			i.Policies.Current, i.Policies.File = true, "0123456789"
			want := append([]string{"i-1 *", "h", "v1", "2026-03-01T12:00:00Z", "current", "01234567"}, tt.want...)
			check.Equal(t, "row", (&limits{API: connect.API{Env: &command.Env{}}}).instanceRow(i), want)
		})
	}
}
