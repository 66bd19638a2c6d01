package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"

	"github.com/google/go-cmp/cmp"
)

// TestBanCommandLine: all that is wrong with a ban is found before the server is asked, with its field.
func TestBanCommandLine(t *testing.T) {
	flags, asked := readAPI(t)
	for _, tt := range []struct {
		args string
		says []string
	}{
		{"limits set shop --ban on", []string{`--ban: "on" is not off, denials=`}},
		{"limits set shop --ban=", []string{"--ban is empty"}},
		{"limits set --ban denials=0,within=60,for=1000h,factor=0.5,max=x,forget=-1s", []string{
			"--ban.denials: 0 is not between", "--ban.within: \"60\" is not a duration", "--ban.for: 1000h0m0s is not between",
			"--ban.factor: 0.5 is not between", "--ban.max: \"x\" is not a duration", "--ban.forget: -1s is not between",
		}},
		{"limits set --tier gold --ban denials=many,factor=x", []string{"--ban.denials: \"many\"", "--ban.factor: \"x\""}},
		{"limits set shop --ban for=1m,for=2m", []string{"--ban.for: is given twice"}},
		{"limits set shop --ban bans=1", []string{`"bans=1" is not off, denials=`}},
		{"limits set shop --for-user ada --ban off", []string{"--ban is about the client"}},
		{"limits candidate set shop --ban off", []string{"no limits to try"}},
		{"limits unban", []string{"CLIENT is missing"}},
	} {
		has(t, runFails(t, command.ExitUsage, "", "", append(strings.Fields(tt.args), flags...)...), tt.says...)
	}
	if len(*asked) > 0 {
		t.Errorf("a command line that cannot be asked for %v", *asked)
	}
}

// sending is an admin API that notes what is sent to it.
func sending(t *testing.T) (flags []string, sent *[]string) {
	t.Helper()
	sent = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("ETag", `"1"`)
			_, _ = w.Write([]byte(`{"client_id":"shop"}`))
			return
		}
		body, _ := io.ReadAll(r.Body)
		*sent = append(*sent, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.URL.Path, "/admin/v1")+"?"+r.URL.RawQuery+" "+string(body)))
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	return []string{"--token", "x", "--issuer", "http://127.0.0.1", "--server", server.URL}, sent
}

// TestUnbanIsSent: with whose ban it is, and why.
func TestUnbanIsSent(t *testing.T) {
	flags, sent := sending(t)
	for _, tt := range []struct{ args, want, says string }{
		{"limits unban shop", "DELETE /bans/shop?", "The ban of shop is now lifted"},
		{"limits unban shop --user ada --forget --reason fixed", "DELETE /bans/shop?forget=true&reason=fixed&username=ada", "The ban of ada at shop is now lifted"},
	} {
		*sent = nil
		stdout, stderr, status := run(t, "", append(strings.Fields(tt.args), flags...)...)
		if diff := cmp.Diff([]string{tt.want}, *sent); diff != "" || status != command.ExitOK || !strings.Contains(stdout+stderr, tt.says) {
			t.Errorf("%s: status %d, %s%s (-want +got):\n%s", tt.args, status, stdout, stderr, diff)
		}
	}
}

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
	flags := []string{"--token", "x", "--issuer", "http://127.0.0.1", "--server", server.URL}
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
