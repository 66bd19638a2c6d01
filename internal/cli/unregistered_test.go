package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
)

// TestPolicyOfADeletedClient: a server whose configuration names a client that is deleted, or not
// registered yet, starts and serves. It says so in its log, /readyz, the metrics and limits list.
func TestPolicyOfADeletedClient(t *testing.T) {
	data := storeFile(t)
	var ops, shop credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	runJSON(t, &shop, "", "client", "create", "shop", "--data", data)
	runJSON(t, &credentials{}, "", "client", "create", "gone", "--data", data)
	runJSON(t, &map[string]any{}, "", "client", "delete", "gone", "--data", data)
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	check.OK(t, os.WriteFile(file, []byte("rate_limit:\n  clients:\n    shop: { trusted: true }\n    gone: { trusted: true }\n"), 0o600))

	o := serving(t, "serve", "--config", file, "--data", data, "--issuer", "http://127.0.0.1:9096")
	askToken(t, o.clients, shop)
	const ready = `{"status":"ready","checks":{"configuration":"has a policy for unregistered clients: \"gone\""}}`
	check.Equal(t, "/readyz for operators", strings.TrimSpace(page(t, o.operators+"/readyz")), ready)
	check.Equal(t, "/readyz", page(t, o.clients+"/readyz"), `{"status":"ready","checks":{"configuration":"has a policy for unregistered clients: 1"}}`)
	has(t, page(t, o.operators+"/metrics"), "\noauth_policies_unregistered 1\n")
	check.Eventually(t, "the log names it", func() bool {
		return strings.Contains(o.log.String(), "level=WARN msg=\"configuration has a policy for an unregistered client\" client_id=gone field=rate_limit.clients.gone")
	})
	token := askToken(t, o.clients, ops)
	listed := unregisteredIn(t, "--server", o.operators, "--token", token)
	check.Equal(t, "unregistered", listed, []string{"gone not registered, trusted 100/60s 100/60s configuration file 0 0 0 -"})
	o.stop(t)
}

// unregisteredIn returns the rows of the limits list of a server that are of clients which are not registered.
// As JSON it has the same clients.
func unregisteredIn(t *testing.T, flags ...string) (rows []string) {
	t.Helper()
	list := append([]string{"limits", "list"}, flags...)
	text, _, _ := run(t, "", list...)
	var names []string
	for line := range strings.Lines(table(text)) {
		if strings.Contains(line, " not registered") {
			rows, names = append(rows, strings.TrimSpace(line)), append(names, strings.Fields(line)[0])
		}
	}
	var listed struct {
		Unregistered []string                      `json:"unregistered"`
		Limits       []adminapi.UnregisteredClient `json:"limits_of_unregistered"`
	}
	runJSON(t, &listed, "", list...)
	check.Equal(t, "names as JSON", slices.Equal(listed.Unregistered, names), true)
	check.Equal(t, "limits as JSON", slices.EqualFunc(listed.Limits, names, func(c adminapi.UnregisteredClient, id string) bool { return c.ClientID == id }), true)
	return rows
}

// TestLimitsListHasDeletedClients: a client that is deleted is listed as not registered as long as anything is
// left of what operators have set for it, and no longer if it is registered again.
func TestLimitsListHasDeletedClients(t *testing.T) {
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	o := serving(t, "serve", "--data", data, "--issuer", "http://127.0.0.1:9096")
	at := []string{"--server", o.operators, "--token", askToken(t, o.clients, ops)}
	does := func(line string, flags ...string) {
		t.Helper()
		runOK(t, "", append(strings.Fields(line), flags...)...)
	}
	for _, id := range []string{"policy", "tried", "user", "back"} {
		does("client create "+id, "--data", data)
	}
	does("limits set --tier gold --user 9/60s --yes", at...)
	does("limits set policy --tier gold --client 8/60s --yes", at...)
	does("limits candidate set tried --client 7/60s", at...)
	does("limits set user --for-user ada --user 6/60s --yes", at...)
	does("limits trust back on", at...)
	check.Equal(t, "unregistered while all are there", unregisteredIn(t, at...), nil)
	for _, id := range []string{"policy", "tried", "user", "back"} {
		does("client delete "+id, "--data", data)
	}
	does("client create back", "--data", data)
	check.Equal(t, "unregistered", unregisteredIn(t, at...), []string{
		"policy not registered, enforce 9/60s 8/60s changed here, tier gold 0 0 0 -",
		"tried not registered, enforce 100/60s 100/60s default 0 0 0 0",
		"user not registered, enforce 100/60s 100/60s default, 1 user's own 0 0 0 -",
	})
	check.Equal(t, "of those with a name", len(unregisteredIn(t, append(at, "--filter", "RIE")...)), 1)
	does("limits unset policy --yes", at...)
	does("limits unset user --for-user ada", at...)
	does("limits unset tried --candidate", at...)
	check.Equal(t, "unregistered after the removal", unregisteredIn(t, at...), nil)
	o.stop(t)
}

// TestUnregisteredClientsAreReadByThePage: all pages, and those are listed that the filter has.
func TestUnregisteredClientsAreReadByThePage(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("after")
		switch strings.TrimPrefix(r.URL.Path, adminapi.Prefix) {
		case "/clients":
			_, _ = w.Write([]byte(`{"clients":[]}`))
		case "/unregistered":
			asked = append(asked, after)
			next := map[string]string{"": "b1", "b1": "b2"}[after]
			_, _ = fmt.Fprintf(w, `{"unregistered":[{"client_id":"a%[1]s"},{"client_id":"c%[1]s"}],"next":%[2]q}`, after, next)
		}
	}))
	t.Cleanup(server.Close)
	flags := asOperator(server.URL)
	check.Equal(t, "rows", len(unregisteredIn(t, append(flags, "--filter", "c")...)), 3)
	check.Equal(t, "asked, by two commands", asked, []string{"", "b1", "b2", "", "b1", "b2"})
}
