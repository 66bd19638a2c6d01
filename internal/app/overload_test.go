package app

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

// A changed section overload is applied to the shedder and the store queue. An invalid one is not.
func TestOverloadSettingsFollowTheFile(t *testing.T) {
	f := newFollowed(t, filepath.Join(t.TempDir(), "x.yaml"), tenPerMinute+"overload: { mode: dry_run, max_in_flight: 50 }\n")
	check.Equal(t, "mode at the start", f.base.overload.shedder.Stats().Mode, ratelimit.DryRun)
	check.Equal(t, "mode of the store queue", f.base.overload.storeQueue.Stats().Mode, ratelimit.DryRun)
	f.write(tenPerMinute + "overload: { mode: off, target: 20ms, max_in_flight: 90 }\n")
	check.OK(t, f.look(2))
	check.Equal(t, "mode", f.base.overload.shedder.Stats().Mode, ratelimit.Off)
	check.Equal(t, "mode of the store queue", f.base.overload.storeQueue.Stats().Mode, ratelimit.Off)
	check.Equal(t, "for the next server in the process", f.next().Overload.MaxInFlight, 90)
	f.write(tenPerMinute + "overload: { mode: on }\n")
	check.ErrorSays(t, f.look(2), "overload.mode")
	check.Equal(t, "mode after a file that is refused", f.base.overload.shedder.Stats().Mode, ratelimit.Off)
}

// Operators see the clients with requests refused before the store, in addition to those refused by
// the shedder.
func TestRefusedBeforeTheStoreIsRecorded(t *testing.T) {
	o := newOverload(config.Default().Overload, pooled{connections: 1})
	o.activity = activity.New(0, time.Now())
	ctx := overload.WithRequest(storequeue.NewRequest(t.Context()), &overload.Request{ClientID: "shop"}, 1)
	_, err := o.storeQueue.Enter(ctx)
	check.OK(t, err)
	_, err = o.storeQueue.Enter(overload.WithRequest(storequeue.NewRequest(t.Context()), &overload.Request{ClientID: "shop"}, 1))
	check.Equal(t, "refused", errors.As(err, new(*overload.ShedError)), true)
	_, err = o.storeQueue.Enter(storequeue.NewRequest(t.Context())) // of an unknown client
	check.Equal(t, "refused", errors.As(err, new(*overload.ShedError)), true)
	report := o.activity.Report(time.Now(), 10)
	check.Equal(t, "clients", len(report.Clients), 1)
	check.Equal(t, "shed", report.Clients[0].Shed, uint64(1))
	check.Equal(t, "calls of sheddable requests that were refused", o.storeQueue.Stats().Calls[0][overload.Shed], uint64(2))
}

// In dry-run mode, a request that both the shedder and the store queue would have refused is recorded once.
func TestRecordedOnceInDryRun(t *testing.T) {
	c := config.Default().Overload
	c.Mode, c.MaxInFlight = ratelimit.DryRun, 10
	o := newOverload(c, pooled{connections: 1})
	o.activity = activity.New(0, time.Now())
	const more = 4 // than there is room for: seven introspections
	for range 7 + more {
		r := overload.Request{ClientID: "shop", Class: overload.Introspection}
		rank, err := o.shedder.Admit(t.Context(), &r)
		check.OK(t, err)
		o.refused(overload.WithRequest(t.Context(), &r, rank), true)
	}
	check.Equal(t, "would have been refused", o.activity.Report(time.Now(), 10).Clients[0].WouldShed, uint64(7+more))
}

// Operators see the clients with shed requests, and not the callers that hung up.
func TestShedRequestsAreRecorded(t *testing.T) {
	o := overloadControl{activity: activity.New(0, time.Now())}
	for _, outcome := range []overload.Outcome{overload.Shed, overload.Shed, overload.WouldShed, overload.Abandoned, overload.Admitted} {
		o.observe(&overload.Request{ClientID: "shop", Class: overload.Refresh}, outcome)
	}
	o.observe(&overload.Request{Class: overload.Page}, overload.Shed)
	report := o.activity.Report(time.Now(), 10)
	check.Equal(t, "clients", len(report.Clients), 1)
	check.Equal(t, "shed", report.Clients[0].Shed, uint64(2))
	check.Equal(t, "would have been", report.Clients[0].WouldShed, uint64(1))
}
