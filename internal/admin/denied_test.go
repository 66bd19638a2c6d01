package admin_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/ratelimit"
)

// ofUser returns the expected entry for a denied user.
func ofUser(client, user string, denied uint64) adminapi.DeniedUser {
	out := adminapi.DeniedUser{ClientID: client, Denials: activity.Denials{Denied: denied}}
	if user != "" {
		out.Username, out.UserHash = &user, "hash-of-"+user
	}
	return out
}

func TestDeniedUsersOfAllInstances(t *testing.T) {
	store := openStore(t)
	settings := file()
	settings.Mode, settings.Clients = ratelimit.Enforce, map[string]ratelimit.Policy{}
	settings.Default.User, settings.Default.Client = perMinute(10), perMinute(10)
	a, b := newInstance(t, "i-1", store, settings), newInstance(t, "i-2", store, settings)
	a.ask("shop", "ada", 12)
	a.ask("shop", "bob", 13)
	a.ask("shop", "", 11)
	a.ask("app", "ada", 11)
	b.ask("shop", "ada", 14)
	b.publish()

	var all, shop, first adminapi.Top
	a.get("/top").into(&all)
	want := []adminapi.DeniedUser{ofUser("shop", "ada", 6), ofUser("shop", "bob", 3), ofUser("app", "ada", 1), ofUser("shop", "", 1)}
	if diff := cmp.Diff(want, all.Denied); diff != "" || all.DeniedOthers != nil {
		t.Errorf("of all clients, others %v (-want +got):\n%s", all.DeniedOthers, diff)
	}

	a.get("/top?client_id=shop").into(&shop)
	want = []adminapi.DeniedUser{ofUser("shop", "ada", 6), ofUser("shop", "bob", 3), ofUser("shop", "", 1)}
	if diff := cmp.Diff(want, shop.Denied); diff != "" || *shop.DeniedOthers != (activity.Denials{}) {
		t.Errorf("of one client, others %v (-want +got):\n%s", shop.DeniedOthers, diff)
	}
	check.Equal(t, "talkers", len(shop.Talkers), 1)
	check.Equal(t, "denied", shop.Talkers[0].Denied, 10)
	for _, k := range shop.NearLimit {
		check.Equal(t, "client near its limit", k.ClientID, "shop")
	}
	check.Equal(t, "near the limit", len(shop.NearLimit), 3)

	a.get("/top?client_id=shop&limit=1").into(&first)
	check.Equal(t, "shown", len(first.Denied), 1)
	check.Equal(t, "of others", first.DeniedOthers.Denied, 4)

	var quiet adminapi.Top
	a.get("/top?client_id=ops").into(&quiet)
	check.Equal(t, "of a client without requests", len(quiet.Talkers)+len(quiet.Denied)+len(quiet.NearLimit), 0)
	a.send(request{method: http.MethodGet, path: "/top?client_id=nobody", token: reader}).is(http.StatusNotFound)
	a.send(request{method: http.MethodGet, path: "/top?client_id=", token: reader}).is(http.StatusNotFound)
}

// TestTopByShed: the clients with the most requests shed under overload, on all instances.
func TestTopByShed(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	for i := range 4 {
		a.recorder.Shed(a.clock.Now(), "shop", i == 0)
		b.recorder.Shed(b.clock.Now(), "shop", false)
		b.recorder.Shed(b.clock.Now(), "app", true)
	}
	a.ask("ops", "", 5)
	b.publish()
	of := func(query string) (out []string) {
		var top adminapi.Top
		a.get("/top" + query).into(&top)
		for _, c := range top.Talkers {
			out = append(out, fmt.Sprint(c.ClientID, " ", c.Total(), " ", c.Shed, " ", c.WouldShed))
		}
		return out
	}
	check.Equal(t, "by shed requests", of("?sort=shed"), []string{"shop 0 7 1", "app 0 0 4"})
	check.Equal(t, "of one client", of("?client_id=shop"), []string{"shop 0 7 1"})
	check.Equal(t, "by requests", of(""), []string{"shop 0 7 1", "ops 5 0 0", "app 0 0 4"})
}

// TestTopByWaste: the clients that waste the most tokens, on all instances.
func TestTopByWaste(t *testing.T) {
	store := openStore(t)
	a, b := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	for i := range 9 {
		a.recorder.RecordIssued(a.clock.Now(), activity.Issuance{ClientID: "shop", Wasted: i < 3})
		a.recorder.RecordIssued(a.clock.Now(), activity.Issuance{ClientID: "app", Wasted: i < 4, Refresh: i < 2})
		b.recorder.RecordIssued(b.clock.Now(), activity.Issuance{ClientID: "shop", Wasted: i < 2, Refresh: true})
		b.recorder.RecordIssued(b.clock.Now(), activity.Issuance{ClientID: "ops"})
	}
	a.ask("ops", "", 100)
	for _, id := range []string{"shop", "app"} {
		a.ask(id, "", 9)
		b.ask(id, "", 9)
	}
	b.ask("ops", "", 9)
	b.publish()
	of := func(query string) (out []string) {
		var top adminapi.Top
		a.get("/top" + query).into(&top)
		for _, c := range top.Talkers {
			out = append(out, fmt.Sprint(c.ClientID, " ", c.Issued, " ", c.Wasted, " ", c.EarlyRefreshes))
		}
		return out
	}
	check.Equal(t, "by waste", of("?sort=wasted"), []string{"shop 18 5 2", "app 9 4 2"})
	check.Equal(t, "the first by waste", of("?sort=wasted&limit=1"), []string{"shop 18 5 2"})
	check.Equal(t, "of one client", of("?sort=wasted&client_id=ops"), []string{"ops 9 0 0"})
	check.Equal(t, "by requests", of("?sort=requests"), []string{"ops 9 0 0", "app 9 4 2", "shop 18 5 2"})
	a.send(request{method: http.MethodGet, path: "/top?sort=names", token: reader}).is(http.StatusUnprocessableEntity)
}

func TestUserHash(t *testing.T) {
	w := newWorld(t)
	var got adminapi.UserHash
	w.get("/user-hash?username=ADA").into(&got)
	check.Equal(t, "hash", got, adminapi.UserHash{Username: "ada", UserHash: "hash-of-ada"})
	w.send(request{method: http.MethodGet, path: "/user-hash", token: reader}).is(http.StatusUnprocessableEntity).says("username")
	w.send(request{method: http.MethodGet, path: "/user-hash?username=x&client_id=y", token: reader}).is(http.StatusUnprocessableEntity)
}

// TestDeniedByACandidate: would-be denials of a candidate are shown by user too.
func TestDeniedByACandidate(t *testing.T) {
	w := newWorld(t)
	w.put("/candidates/"+clientcfg.GlobalCandidate, `{"user":[{"requests":2,"window":"60s"}]}`).is(http.StatusOK)
	w.ask("shop", "ada", 5)
	w.get("/top?client_id=shop").has("denied.0.candidate_would_deny=3")
}
