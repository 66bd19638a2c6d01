package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestBansAreShown: all pages, as a table and as JSON.
func TestBansAreShown(t *testing.T) {
	const one = `{"client_id":"shop","username":"ada","dry_run":false,"active":true,"not_enforced":true,"bans_before":2,"since":"2026-03-01T12:00:00Z","until":"2026-03-01T12:20:00Z","forgotten_at":"2026-03-02T12:20:00Z"}`
	const two = `{"client_id":"shop","dry_run":false,"active":false,"bans_before":0,"since":"2026-03-01T11:00:00Z","until":"2026-03-01T11:01:00Z","forgotten_at":"2026-03-02T11:05:00Z","lifted_at":"2026-03-01T11:01:00Z"}`
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, strings.TrimPrefix(r.URL.Path, "/admin/v1")+"?"+r.URL.RawQuery)
		page := `{"bans":[` + one + `],"next":"shop ada"}`
		if r.URL.Query().Get("after") != "" {
			page = `{"bans":[` + two + `]}`
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(server.Close)
	flags := asOperator(server.URL)
	stdout := runOK(t, "", append([]string{"limits", "bans", "shop", "--ended"}, flags...)...)
	want := `CLIENT USER SINCE UNTIL FOR BANS BEFORE
shop ada 2026-03-01T12:00:00Z 2026-03-01T12:20:00Z, not enforced by the policy now 20m 2
shop - 2026-03-01T11:00:00Z 2026-03-01T11:01:00Z, lifted 1m 0
`
	check.Equal(t, "table", table(stdout), want)
	pages := []string{"/bans?client_id=shop&ended=true&limit=1000", "/bans?after=shop+ada&client_id=shop&ended=true&limit=1000"}
	check.Equal(t, "asked for", asked, pages)
	stdout = runOK(t, "", append([]string{"limits", "bans", "--dry-run", "-o", "json"}, flags...)...)
	var out struct{ Bans []map[string]any }
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || len(out.Bans) != 2 || out.Bans[0]["username"] != "ada" {
		t.Errorf("as JSON: %v\n%s", err, stdout)
	}
	if asked[2] != "/bans?limit=1000&mode=dry_run" {
		t.Errorf("asked for %s", asked[2])
	}
}
