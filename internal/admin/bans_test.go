package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
)

const banFields = `"denials":3,"within":"1m","for":"5m","factor":2,"max":"24h","forget":"24h"`

// ban bans a key, or records a ban in dry-run.
func (w *instance) ban(clientID, username string) {
	w.t.Helper()
	e := w.policies.Snapshot().For(clientID)
	for range 3 {
		w.bans.Denied(w.clock.Now(), ratelimit.Key{ClientID: clientID, Username: username}, e)
	}
	check.OK(w.t, w.bans.Refresh(w.t.Context()))
}

// listed returns the keys of the bans at a path.
func (w *instance) listed(path string) string {
	w.t.Helper()
	var names []string
	list, _ := w.get(path).at("bans").([]any)
	for _, one := range list {
		b, _ := one.(map[string]any)
		names = append(names, fmt.Sprint(b["client_id"], " ", b["username"]))
	}
	return strings.Join(names, ", ")
}

// TestBanWidens: the clients that would be banned are unknown.
func TestBanWidens(t *testing.T) {
	w := newWorld(t)
	w.ask("shop", "", 1)
	w.change("PATCH", "/policies/shop?validate=true", `{"ban":{}}`).has("effect.widens=true",
		"effect.unknown.0.why=bans cannot be predicted; try dry-run first")
	w.change("PATCH", "/policies/shop", `{"ban":{}}`)
	w.change("PATCH", "/policies/shop?validate=true", `{"ban":{"denials":30}}`).has("effect.widens=false")
	w.change("PATCH", "/policies/shop?validate=true", `{"ban":{"max":"48h"}}`).has("effect.widens=true")
}

// TestBansAreListed: by client and user, in pages, only bans in force or all.
func TestBansAreListed(t *testing.T) {
	w := newWorld(t)
	w.change("PATCH", "/settings", `{"default":{"ban":{`+banFields+`}}}`)
	w.get("/bans").has("bans.#=0")
	w.ban("shop", "ada")
	w.ban("shop", "")
	w.ban("app", "rob")
	check.Equal(t, "all", w.listed("/bans"), "app rob, shop <nil>, shop ada")
	check.Equal(t, "of one client", w.listed("/bans?client_id=shop"), "shop <nil>, shop ada")
	a := w.get("/bans?limit=1").has("bans.0.since=2026-03-01T12:00:00Z", "bans.0.until=2026-03-01T12:05:00Z",
		"bans.0.forgotten_at=2026-03-02T12:05:00Z", "bans.0.active=true")
	next := a.at("next")
	check.Equal(t, "next", next, any("app rob"))
	check.Equal(t, "the next page", w.listed("/bans?limit=2&after=app%20rob"), "shop <nil>, shop ada")
	w.clock.Advance(5 * time.Minute)
	check.Equal(t, "in force", w.listed("/bans"), "")
	check.Equal(t, "and over", w.listed("/bans?ended=true"), "app rob, shop <nil>, shop ada")
	w.ban("shop", "ada")
	w.get("/bans").has("bans.0.bans_before=1")
	for _, query := range []string{"?mode=off", "?ended=1", "?limit=0", "?user=ada"} {
		check.Equal(t, query, w.send(request{method: "GET", path: "/bans" + query, token: reader}).status, http.StatusUnprocessableEntity)
	}
}

// TestBansInDryRunAreListed: bans in dry-run are listed separately from those in force.
func TestBansInDryRunAreListed(t *testing.T) {
	w := newWorld(t)
	w.change("PATCH", "/settings", `{"mode":"dry_run","default":{"ban":{`+banFields+`}}}`)
	w.ban("shop", "ada")
	check.Equal(t, "in force", w.listed("/bans"), "")
	check.Equal(t, "in dry-run", w.listed("/bans?mode=dry_run"), "shop ada")
	check.Equal(t, "lift", w.send(request{method: "DELETE", path: "/bans/shop?username=ada", token: writer}).status, http.StatusNoContent)
	check.Equal(t, "lifted", w.listed("/bans?mode=dry_run"), "")
	trail := w.get("/audit?target=bans%2Fshop%20ada").at("entries").([]any)
	check.Equal(t, "entries", len(trail), 1)
	entry, _ := trail[0].(map[string]any)
	check.Equal(t, "in dry-run", entry["before"].(map[string]any)["dry_run"], any(true))
	check.Equal(t, "after", entry["after"], any(nil))
	check.Equal(t, "lift again", w.send(request{method: "DELETE", path: "/bans/shop?username=ada", token: writer}).status, http.StatusNotFound)
}

// TestBansThatAreNotEnforced: bans in force are marked if the current policy does not enforce them,
// in either mode.
func TestBansThatAreNotEnforced(t *testing.T) {
	w := newWorld(t)
	marked := func(mode string) any { t.Helper(); return w.get("/bans?mode="+mode).at("bans", 0, "not_enforced") }
	w.change("PATCH", "/settings", `{"default":{"ban":{`+banFields+`}}}`)
	w.ban("shop", "ada")
	check.Equal(t, "enforced", marked("enforce"), any(nil))
	for _, change := range []string{`{"ban":"off"}`, `{"ban":null,"mode":"off"}`, `{"mode":"dry_run"}`} {
		w.change("PATCH", "/policies/shop", change)
		check.Equal(t, change, marked("enforce"), any(true))
	}
	w.ban("shop", "ada")
	check.Equal(t, "in dry-run", marked("dry_run"), any(nil))
	w.change("PATCH", "/policies/shop", `{"mode":null}`)
	check.Equal(t, "in dry-run before", marked("dry_run"), any(true))
	check.Equal(t, "enforced again", marked("enforce"), any(nil))
	w.change("PATCH", "/policies/shop", `{"trusted":true,"ban":null}`)
	check.Equal(t, "of who is trusted", marked("enforce"), any(true))
	w.clock.Advance(time.Hour)
	w.get("/bans?ended=true").has("bans.0.not_enforced=null")
}

// TestUnban: lifting a ban takes effect at once on this instance and with the next refresh on
// others, and is in the audit trail.
func TestUnban(t *testing.T) {
	store := openStore(t)
	w, other := newInstance(t, "i-1", store, file()), newInstance(t, "i-2", store, file())
	w.change("PATCH", "/settings", `{"default":{"ban":{`+banFields+`}}}`)
	w.ban("shop", "ada")
	check.OK(t, other.bans.Refresh(t.Context()))
	check.Equal(t, "at the other one", other.listed("/bans"), "shop ada")
	for _, tt := range []struct {
		path, token string
		want        int
	}{
		{"/bans/shop?username=ada", reader, http.StatusForbidden},
		{"/bans/shop?username=ada&force=1", writer, http.StatusUnprocessableEntity},
		{"/bans/shop", writer, http.StatusNotFound},
		{"/bans/shop?username=rob", writer, http.StatusNotFound},
		{"/bans/gone", writer, http.StatusNotFound},
		{"/bans/shop?username=ADA&reason=fixed", writer, http.StatusNoContent},
		{"/bans/shop?username=ada", writer, http.StatusNotFound},
		{"/bans/shop?username=ada&forget=true", writer, http.StatusNoContent},
		{"/bans/shop?username=ada&forget=true", writer, http.StatusNotFound},
	} {
		check.Equal(t, tt.path, w.send(request{method: "DELETE", path: tt.path, token: tt.token}).status, tt.want)
	}
	check.Equal(t, "here", w.listed("/bans"), "")
	check.OK(t, other.bans.Refresh(t.Context()))
	check.Equal(t, "at the other one", other.listed("/bans"), "")
	trail := w.get("/audit?target=bans%2Fshop%20ada").at("entries").([]any)
	check.Equal(t, "entries", len(trail), 2)
	first, _ := trail[1].(map[string]any)
	check.Equal(t, "action", first["action"], any("unban"))
	check.Equal(t, "reason", first["reason"], any("fixed"))
	check.Equal(t, "before", first["before"].(map[string]any)["username"], any("ada"))
	after, _ := first["after"].(map[string]any)
	check.Equal(t, "lifted", fmt.Sprint(after["active"], " ", after["lifted_at"]), "false 2026-03-01T12:00:00Z")
	check.Equal(t, "open", first["open"], any(nil))
	forgotten, _ := trail[0].(map[string]any)
	check.Equal(t, "before it was forgotten", forgotten["before"].(map[string]any)["active"], any(false))
	check.Equal(t, "forgotten", forgotten["after"], any(nil))
}

// away is an unreachable store of bans.
type away struct{ bans.Store }

func (away) Ban(context.Context, ratelimit.Key) (bans.Ban, error) {
	return bans.Ban{}, errors.New("no database")
}

// TestUnbanWithoutStore: the response does not claim that the ban is lifted.
func TestUnbanWithoutStore(t *testing.T) {
	store := openStore(t)
	w := newInstance(t, "i-1", store, file())
	keeper, err := bans.New(t.Context(), bans.Options{Store: away{bans.NewRepository(store)}, Counters: w.counters, Clock: w.clock.Now})
	check.OK(t, err)
	w = newInstance(t, "i-1", store, file(), withBans(keeper))
	check.Equal(t, "status", w.send(request{method: "DELETE", path: "/bans/shop", token: writer}).status, http.StatusServiceUnavailable)
}

func withBans(b *bans.Bans) func(*admin.Options) { return func(o *admin.Options) { o.Bans = b } }
