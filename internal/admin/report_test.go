package admin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	datastore "oauth-server/internal/store"
	"oauth-server/internal/syncer"
)

// publish shows this instance to the others, as its heartbeat does.
func (w *instance) publish() {
	w.t.Helper()
	w.beat(w.name, w.api.Report())
}

func (w *instance) beat(id string, report []byte) {
	w.t.Helper()
	w.store.heartbeats[id] = syncer.Instance{ID: id, Report: report, Beaten: w.store.clock.Now()}
}

// heartbeats are the heartbeats of instances, by ID.
type heartbeats map[string]syncer.Instance

// Reports implements [admin.Reports].
func (s *shared) Reports(_ context.Context, ttl time.Duration) (list []syncer.Instance, err error) {
	for _, id := range slices.Sorted(maps.Keys(s.heartbeats)) {
		list = append(list, s.heartbeats[id])
	}
	return syncer.Living(list, s.clock.Now(), ttl), s.noReports
}

func TestInstancesTellHowFreshTheyAre(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	a.publish() // older than the instance's own answer
	b.publish()
	a.put("/policies/shop", tenAMinute).is(200)
	all := a.get("/instances").has("instances.#=2", "instances.0.self=true", "instances.0.policies.current=true", "instances.1.id=i-2",
		"instances.1.self=false", "instances.1.policies.current=false")
	check.Equal(t, "same file", all.at("instances", 0, "policies", "file"), all.at("instances", 1, "policies", "file"))
	check.OK(t, b.follower.Refresh(t.Context()))
	b.publish()
	a.get("/instances").has("instances.1.policies.current=true")
	a.clock.Advance(time.Minute)
	a.get("/instances").has("instances.#=2")
	store.clock.Advance(time.Minute)
	a.get("/instances").has("instances.#=1")
}

// TestInstancesTellHowTheyShare: other instances show an instance that is in an outage.
func TestInstancesTellHowTheyShare(t *testing.T) {
	store := openStore(t)
	sharing := func(state adminapi.SyncState) func(*admin.Options) {
		return func(o *admin.Options) { o.Sync = func() adminapi.SyncState { return state } }
	}
	a := newInstance(t, "i-1", store, file(), sharing(adminapi.SyncState{Keys: 7, WallOffset: 0.25, StoreOffset: -0.5}))
	b := newInstance(t, "i-2", store, file(), sharing(adminapi.SyncState{
		Keys: 5, Dirty: 3, Degraded: true, Outage: true, StaleMillis: 2, UnconfirmedMillis: 4000, ClockAlone: "wall", WallOffset: 3600, StoreOffset: 0.5,
	}))
	b.publish()
	alone := newInstance(t, "i-3", store, file())
	alone.publish()
	all := a.get("/instances")
	for i, want := range []map[string]any{
		{"keys": 7.0, "dirty": 0.0, "degraded": false, "outage": false, "stale_ms": 0.0, "unconfirmed_ms": 0.0, "wall_offset_s": 0.25, "clock_offset_s": -0.5},
		{
			"keys": 5.0, "dirty": 3.0, "degraded": true, "outage": true, "stale_ms": 2.0, "unconfirmed_ms": 4000.0,
			"clock_alone": "wall", "wall_offset_s": 3600.0, "clock_offset_s": 0.5,
		},
		nil,
	} {
		got, _ := all.at("instances", i, "sync").(map[string]any)
		check.Equal(t, fmt.Sprintf("instance %d", i), got, want)
	}
}

func TestInstanceWithoutReport(t *testing.T) {
	for name, report := range map[string][]byte{"none yet": nil, "broken": []byte(`{"instance":7}`)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.change("PATCH", "/settings?validate=true", `{}`).has("effect.incomplete=false")
			w.beat("i-0", report)
			w.get("/instances").has("instances.#=1")
			w.change("PATCH", "/settings?validate=true", `{}`).has("effect.incomplete=true")
		})
	}
}

func TestReportsCannotBeRead(t *testing.T) {
	store := openStore(t)
	store.noReports = errors.New("no database")
	w := newInstance(t, "i-1", store, file())
	w.get("/instances").has("instances.#=1")
	w.change("PATCH", "/settings?validate=true", `{}`).has("effect.incomplete=true")
}

func TestSweepAudit(t *testing.T) {
	store := openStore(t) // its goroutines are outside the synctest bubble
	synctest.Test(t, func(t *testing.T) {
		w, audit := newInstance(t, "i-1", store, file()), &trail{}
		api, err := admin.New(admin.Options{
			Issuer: "x", Instance: func() string { return "i-1" }, Tokens: w.tokens, Users: store, Clients: w.clients, Policies: w.policies, Resets: w.resets, Counters: w.counters,
			Activity: w.recorder, Bans: w.bans, Reports: store, Registry: store, Events: audit, AuditKept: 400 * 24 * time.Hour,
		})
		check.OK(t, err)
		check.OK(t, api.SweepAudit(t.Context()))
		check.Equal(t, "sweeps of what is older than 400 days", audit.swept.Load(), 1)
		audit.broken.Store(true)
		if err := api.SweepAudit(t.Context()); err == nil {
			t.Error("a failure of the store is not reported")
		}
	})
}

// trail counts the sweeps of entries that are old enough.
type trail struct {
	clientcfg.EventLog

	swept  atomic.Int64
	broken atomic.Bool
}

func (a *trail) SweepEvents(_ context.Context, before, _ time.Time) error {
	if time.Since(before) == 400*24*time.Hour {
		a.swept.Add(1)
	}
	if a.broken.Load() {
		return errors.New("no database")
	}
	return nil
}

// TestPartOfAVersion: an instance that leaves out a target says so beside the version. Setting the
// target repairs it.
func TestPartOfAVersion(t *testing.T) {
	store := openStore(t)
	_, err := store.Append(t.Context(), datastore.Entry{Number: 1, Value: []byte("{}")},
		datastore.Write{Table: clientcfg.PoliciesTable, Record: datastore.Record{Key: "policies/shop", Value: []byte(`{"burst":5}`)}})
	check.OK(t, err)
	w := newInstance(t, "i-1", store, file())
	for _, path := range []string{"/policies", "/candidates"} {
		a := w.get(path)
		a.is(http.StatusOK)
		a.has("version=1", "left_out=1")
	}
	w.get("/instances").has("instances.0.policies.left_out=1", "instances.0.policies.current=false")
	w.change("DELETE", "/policies/shop", "").is(http.StatusNoContent)
	w.get("/policies").has("left_out=null")
}
