package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/store"
	"oauth-server/internal/store/mongo/mongotest"
)

// listed is an entry of client list.
type listed struct {
	ClientID   string `json:"client_id"`
	Unreadable string `json:"unreadable"`
}

// bad checks what the commands say about the client "bad".
func bad(t *testing.T, store []string, why string) {
	t.Helper()
	on := func(args ...string) []string { return append(args, store...) }
	var list []listed
	runJSON(t, &list, "", on("client", "list")...)
	last := list[len(list)-1]
	if last.ClientID != "bad" || !strings.Contains(last.Unreadable, why) {
		t.Errorf("the list ends with %+v, want bad: %s", last, why)
	}
	has(t, runOK(t, "", on("client", "list")...), "bad ", "unreadable")
	for _, args := range [][]string{{"show"}, {"revoke"}, {"rotate-secret"}} {
		has(t, runFails(t, command.ExitFailed, why, "", on("client", args[0], "bad")...), "oauth-server client delete 'bad'")
	}
	for _, args := range [][]string{{"client", "create", "bad"}, {"user", "create", "bad", "--password-stdin"}} {
		runFails(t, command.ExitFailed, `client "bad"`, adaPassword, on(args...)...)
	}
}

// A file holds a client with a grant of a newer release, and one that another program wrote without a time of registration.
func TestUnreadableClientOfAFile(t *testing.T) {
	data := storeFile(t)
	shop := newClient(t, "shop", "--data", data)
	inStore(t, data, func(s app.Store) {
		check.OK(t, s.CreateClient(t.Context(), clientcfg.Client{ID: "bad", Public: true, Grants: []clientcfg.Grant{"of_tomorrow"}}, clientcfg.Event{}))
		check.OK(t, s.CreateClient(t.Context(), clientcfg.Client{
			ID: "timeless", Public: true, Grants: []clientcfg.Grant{clientcfg.AuthorizationCode}, RedirectURIs: []string{"https://app.example/cb"},
		}, clientcfg.Event{}))
	})
	has(t, runOK(t, "", on(data, "client list")...), "timeless")
	bad(t, []string{"--data", data}, `unknown grant type "of_tomorrow"`)
	server := serving(t, "serve", "--data", data)
	askToken(t, server.clients, shop)
	for address, want := range map[string]string{server.operators: `unreadable and not served: \"bad\"`, server.clients: "unreadable and not served: 1"} {
		has(t, page(t, address+"/readyz"), `"status":"ready"`, want)
	}
	server.stop(t)
	runJSON(t, &map[string]any{}, "", "client", "delete", "bad", "--data", data)
}

// badUser checks what the commands say about the user "bad", whose password is no text, and that they show
// the others.
func badUser(t *testing.T, store []string, why string) {
	t.Helper()
	on := func(args ...string) []string { return append(args, store...) }
	var list []registry.User
	runJSON(t, &list, "", on("user", "list")...)
	if len(list) != 2 || list[1].Username != "bad" || !strings.Contains(list[1].Unreadable, why) || list[0].Username != "ada" || list[0].CreatedAt.IsZero() {
		t.Errorf("the list: %+v", list)
	}
	runJSON(t, &list, "", on("user", "list", "--prefix", "bad")...)
	check.Equal(t, "names that begin with it", len(list), 1)
	stdout, stderr, _ := run(t, "", on("user", "list")...)
	has(t, stdout, "bad       unreadable")
	has(t, stderr, why)
	has(t, runFails(t, command.ExitFailed, why, "", on("user", "revoke", "bad")...), "oauth-server user delete 'bad'")
	for args, says := range map[string]string{
		"client create bad": `user "bad" has this name`, "user create BAD --password-stdin": `user "bad" already exists`,
	} {
		runFails(t, command.ExitFailed, says, adaPassword, on(strings.Fields(args)...)...)
	}
	runJSON(t, &map[string]any{}, "", on("user", "delete", "bad")...)
	runJSON(t, &list, "", on("user", "list")...)
	check.Equal(t, "users left", len(list), 1)
}

func TestUnreadableUserOfAFile(t *testing.T) {
	data := storeFile(t)
	addUsers(t, []string{"--data", data}, "ada")
	inStore(t, data, func(s app.Store) {
		check.OK(t, s.CreateUser(t.Context(), accounts.User{Name: "bad", PasswordHash: "to be spoilt", CreatedAt: time.Now()}, clientcfg.Event{}))
	})
	file, err := os.ReadFile(data)
	check.OK(t, err)
	check.OK(t, os.WriteFile(data, bytes.ReplaceAll(file, []byte(`"to be spoilt"`), []byte(`7             `)), 0o600))
	badUser(t, []string{"--data", data}, `member "passwordHash": not the expected JSON`)
}

// TestRecordsThatCannotBeRead: the command finds those of every table, and deletes them, and no others.
func TestRecordsThatCannotBeRead(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		file := storeFile(t)
		unreadableRecords(t, config.Store{Embedded: &config.Embedded{Path: file}}, "--data", file)
	})
	t.Run("backup", func(t *testing.T) {
		cfg := config.Store{Embedded: &config.Embedded{Path: storeFile(t)}}
		newClient(t, "shop", "--data", cfg.Embedded.Path)
		opened, err := app.OpenStore(t.Context(), cfg)
		check.OK(t, err)
		for _, name := range []string{"grants", "bans"} {
			_, err := opened.Put(t.Context(), store.Table{Name: name}, store.Record{Key: "ada shop", Value: []byte(`{"tomorrow":1}`)}, store.Seen{})
			check.OK(t, err)
		}
		check.OK(t, opened.Close())
		out := runOK(t, "", "backup", filepath.Join(t.TempDir(), "b.db"), "--data", cfg.Embedded.Path)
		has(t, out, "1 client, 0 users, 1 sign-in, 1 ban", "1 in bans, 1 in grants; written by a newer release or damaged")
	})
	t.Run("database", func(t *testing.T) {
		db := database(t)
		runOK(t, "", append([]string{"migrate", "up"}, db...)...)
		unreadableRecords(t, config.Store{MongoDB: &config.MongoDB{URI: db[1], Database: db[3]}}, db...)
	})
}

func unreadableRecords(t *testing.T, cfg config.Store, flags ...string) {
	t.Helper()
	on := func(args ...string) []string { return append(append([]string{"records"}, args...), flags...) }
	newClient(t, "shop", flags...)
	opened, err := app.OpenStore(t.Context(), cfg)
	check.OK(t, err)
	var want []string
	for _, table := range []string{"agreements", "bans", "grants", "keys", "known_addresses", "revocations", "secret_uses", "secrets", "sessions", "subjects"} {
		_, err := opened.Put(t.Context(), store.Table{Name: table}, store.Record{Key: "ada shop", Value: []byte(`{"tomorrow":1}`)}, store.Seen{})
		check.OK(t, err)
		want = append(want, table+"/ada shop")
	}
	check.OK(t, opened.Close())
	list := func() (names []string) {
		var found []struct{ Record, Error string }
		runJSON(t, &found, "", on()...)
		for _, r := range found {
			names = append(names, r.Record)
		}
		return names
	}
	check.Equal(t, "found", list(), want)
	runFails(t, command.ExitFailed, "clients/shop: there is no unreadable record of this name", "", on("clients/shop", "--delete", "--yes")...)
	runFails(t, command.ExitFailed, "", "", on("keys/ada shop", "--delete")...)
	runOK(t, "", on("keys/ada shop", "--delete", "--yes")...)
	check.Equal(t, "left", list(), slices.DeleteFunc(want, func(name string) bool { return name == "keys/ada shop" }))
	runFails(t, command.ExitUsage, "", "", on("--delete", "--yes")...)
	runOK(t, "", on("agreements", "bans", "grants", "known_addresses", "revocations", "secret_uses", "secrets", "sessions", "subjects", "--delete", "--yes")...)
	check.Equal(t, "left", list(), nil)
	serving(t, append([]string{"serve"}, flags...)...).stop(t)
}

// The newest entry of the audit trail and the policy that it made are edited by hand. Both instances serve on: the one that
// runs with the limits that it has, and one that starts with those of the entry before, which it says. The trail shows
// the entry among the others. The ordinary command repairs the policy.
func TestUnreadableEntryOfADatabase(t *testing.T) {
	r := newCluster(t, 2)
	runs := r.instances[0]
	limits := func(by operated, args ...string) (stdout, stderr string) {
		t.Helper()
		args = append([]string{"limits"}, append(args, "--server", by.operators, "--token", r.token)...)
		stdout, stderr, status := run(t, "", args...)
		check.Equal(t, "status of limits "+strings.Join(args[1:3], " ")+" "+stderr, status, command.ExitOK)
		return stdout, stderr
	}
	limits(runs, "set", "legacy", "--user", "70/60s", "--yes")
	limits(runs, "set", "legacy", "--user", "80/60s", "--yes")
	var shown struct{ Entries []listedEntry }
	stdout, _ := limits(runs, "audit", "--target", "policies/legacy", "-o", "json")
	check.OK(t, json.Unmarshal([]byte(stdout), &shown))
	newest := shown.Entries[0].Version
	db := mongotest.Connect(t, r.db[1]).Database(r.db[3])
	for table, id := range map[string]any{"trail": newest, "policies": "policies/legacy"} {
		edited, err := db.Collection(table).UpdateByID(t.Context(), id, bson.D{{Key: "$set", Value: bson.D{{Key: "value.unheard_of", Value: "tomorrow"}}}})
		check.OK(t, err)
		check.Equal(t, "edited in "+table, edited.ModifiedCount, 1)
	}

	r.instances[1].stop(t)
	starts := r.start()
	has(t, r.show(runs, "get", "legacy"), "80/60s")
	has(t, r.show(starts, "get", "legacy"), "70/60s")
	askToken(t, starts.clients, r.ops)
	has(t, page(t, starts.clients+"/readyz"), `"status":"degraded"`, `"limits"`)
	has(t, starts.log.String(), "stored limits cannot be used", "unheard_of")

	stdout, stderr := limits(starts, "audit")
	if !strings.Contains(stdout, "unreadable") || !strings.Contains(stdout, "70/60s") || !strings.Contains(stderr, "unheard_of") {
		t.Errorf("the trail is\n%s%s", stdout, stderr)
	}
	stdout, _ = limits(starts, "audit", "--target", "policies/legacy", "-o", "json")
	check.OK(t, json.Unmarshal([]byte(stdout), &shown))
	check.Equal(t, "entries", len(shown.Entries), 2)
	if e := shown.Entries[0]; e.Version != newest || !strings.Contains(e.Unreadable, "unheard_of") || e.Target != "policies/legacy" || shown.Entries[1].Target != "policies/legacy" {
		t.Errorf("the entries are %+v", shown.Entries)
	}

	limits(starts, "dry-run", "on", "--yes")
	limits(starts, "set", "legacy", "--user", "80/60s", "--yes")
	check.Eventually(t, "it is repaired", func() bool { return strings.Contains(page(t, starts.clients+"/readyz"), `"ready"`) })
	has(t, r.show(starts, "get", "legacy"), "80/60s")
}

type listedEntry struct {
	Version            int64
	Target, Unreadable string
}
