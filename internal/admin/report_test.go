package admin_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/clientcfg"
)

// publish lets the others know of this instance.
func (w *instance) publish() {
	w.t.Helper()
	ok(w.t, admin.Publish(w.t.Context(), w.api))
}

func TestInstancesTellHowFreshTheyAre(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	b.publish()
	a.put("/policies/shop", tenAMinute).is(200)
	all := a.get("/instances")
	equal(t, "self", all.at("instances", 0, "self"), any(true))
	equal(t, "current", all.at("instances", 0, "policies", "current"), any(true))
	equal(t, "other", all.at("instances", 1, "id"), any("i-2"))
	equal(t, "other is self", all.at("instances", 1, "self"), any(false))
	equal(t, "other is current", all.at("instances", 1, "policies", "current"), any(false))
	equal(t, "same file", all.at("instances", 0, "policies", "file"), all.at("instances", 1, "policies", "file"))
	ok(t, b.policies.Refresh(t.Context()))
	b.publish()
	equal(t, "other is current", a.get("/instances").at("instances", 1, "policies", "current"), any(true))
	a.clock.advance(time.Minute)
	equal(t, "after its time", len(a.get("/instances").at("instances").([]any)), 1)
}

func TestBrokenReportIsLeftOut(t *testing.T) {
	w := newWorld(t)
	ok(t, w.store.PutReport(t.Context(), clientcfg.Report{Instance: "i-0", Expires: noon.Add(time.Hour), Body: []byte(`{"instance":7}`)}))
	equal(t, "instances", len(w.get("/instances").at("instances").([]any)), 1)
	equal(t, "incomplete", w.change("PATCH", "/settings?validate=true", `{}`).at("effect", "incomplete"), any(true))
}

func TestRunTellsSweepsAndLeaves(t *testing.T) {
	store := openStore(t) // its goroutines are no part of the bubble
	synctest.Test(t, func(t *testing.T) {
		var told, left, swept atomic.Int64
		w := newInstance(t, "i-1", store, file())
		api, err := admin.New(admin.Options{
			Issuer: "x", Instance: "i-1", Tokens: w.tokens, Clients: w.clients, Policies: w.policies, Counters: w.counters,
			Activity: w.recorder, Reports: &reports{told: &told, left: &left}, Audit: &trail{swept: &swept},
		})
		ok(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- api.Run(ctx) }()
		<-time.After(time.Minute)
		synctest.Wait()
		if told, swept, left := told.Load(), swept.Load(), left.Load(); told < 12 || told > 15 || swept != 1 || left != 0 {
			t.Errorf("within a minute it told %d times, swept %d times, left %d times", told, swept, left)
		}
		<-time.After(2 * time.Hour)
		synctest.Wait()
		if n := swept.Load(); n != 2 && n != 3 {
			t.Errorf("after two hours it had swept %d times", n)
		}
		stop()
		ok(t, <-done)
		equal(t, "left", left.Load(), 1)
	})
}

// reports and trail count what is asked of a store.
type reports struct{ told, left *atomic.Int64 }

func (r *reports) PutReport(_ context.Context, rep clientcfg.Report) error {
	r.told.Add(1)
	if rep.Expires.Sub(rep.At) != 15*time.Second {
		r.told.Add(1000)
	}
	return nil
}

func (r *reports) Reports(context.Context, time.Time) ([]clientcfg.Report, error) { return nil, nil }

func (r *reports) DeleteReport(context.Context, string) error {
	r.left.Add(1)
	return nil
}

type trail struct{ swept *atomic.Int64 }

func (*trail) Audit(context.Context, clientcfg.AuditQuery) ([]clientcfg.AuditEntry, error) {
	return nil, nil
}

func (a *trail) SweepAudit(_ context.Context, before time.Time) (int, error) {
	if time.Since(before) == 400*24*time.Hour {
		a.swept.Add(1)
	}
	return 0, nil
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := admin.New(admin.Options{}); err == nil {
		t.Error("a server of nothing was made")
	}
}
