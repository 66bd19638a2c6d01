package cli

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/store/mongo/mongotest"
)

// database returns the flags for a fresh database.
func database(t *testing.T) []string {
	t.Helper()
	uri, name := mongotest.Database(t)
	return []string{"--mongodb-uri", uri, "--mongodb-database", name}
}

// databaseWithShop returns the flags for a fresh database that is migrated, and the client in it.
func databaseWithShop(t *testing.T) (flags []string, shop credentials) {
	t.Helper()
	flags = database(t)
	runOK(t, "", append([]string{"migrate", "up"}, flags...)...)
	runJSON(t, &shop, "", append([]string{"client", "create", "shop"}, flags...)...)
	return flags, shop
}

func TestUnmigratedDatabaseIsRefusedWithTheCommandToRun(t *testing.T) {
	db := database(t)
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"client", "list"}} {
		runFails(t, command.ExitFailed, "run oauth-server migrate up --mongodb-uri '"+db[1]+"' --mongodb-database "+db[3], "", append(args, db...)...)
	}
}

func TestMigrate(t *testing.T) {
	db := database(t)
	var plan, states []shownMigration
	runJSON(t, &plan, "", append([]string{"migrate", "up", "--dry-run"}, db...)...)
	if len(plan) == 0 || plan[0].AppliedAt != nil || len(plan[0].Commands) == 0 {
		t.Fatalf("the plan: %+v", plan)
	}
	text, _, _ := run(t, "", append([]string{"migrate", "up", "--dry-run"}, db...)...)
	has(t, text, "# 0001_layout: ", `db.runCommand({"createIndexes":"ratelimits",`)
	check.Equal(t, "output", runOK(t, "", append([]string{"migrate", "--dry-run"}, db...)...), text)
	runJSON(t, &states, "", append([]string{"migrate", "status"}, db...)...)
	if len(states) != len(plan) || states[0].AppliedAt != nil {
		t.Fatalf("a dry run changed something: %+v", states)
	}
	var report struct{ Applied, Lacking []string }
	runJSON(t, &report, "", append([]string{"migrate", "up"}, db...)...)
	if len(report.Applied) != len(plan) {
		t.Errorf("applied %v", report.Applied)
	}
	check.Equal(t, "output", runOK(t, "", append([]string{"migrate", "up"}, db...)...), "nothing to do: the database is up to date\n")
	if out, _, _ := run(t, "", append([]string{"migrate", "status"}, db...)...); strings.Contains(out, " no ") {
		t.Errorf("afterwards:\n%s", out)
	}
}

func TestMigrateIsForMongoDB(t *testing.T) {
	for _, line := range []string{"up", "verify"} {
		runFails(t, command.ExitUsage, "--mongodb-uri", "", "migrate", line, "--data", storeFile(t))
	}
}

// Two servers on one database: what one issues the other knows, and commands
// work beside them.
func TestServersShareADatabase(t *testing.T) {
	db := database(t)
	first := launch(t, append([]string{"serve", "--migrate", "--listen", "127.0.0.1:0", "--issuer", "http://127.0.0.1:9096"}, db...)...)
	other := first.listening(t)
	var shop credentials
	runJSON(t, &shop, "", append([]string{"client", "create", "shop"}, db...)...)
	second := launch(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--issuer", "http://127.0.0.1:9096"}, db...)...)
	addr := second.listening(t)
	token := askToken(t, "http://"+addr, shop)
	check.Eventually(t, "the first server has heard of the client", func() bool {
		status, body := postForm(t, "http://"+other+"/introspect", shop, url.Values{"token": {token}})
		return status == http.StatusOK && strings.Contains(body, `"active":true`)
	})
	for _, p := range []*process{first, second} {
		p.stop(t)
	}
}

func TestWhatIsWrongWithTheDatabase(t *testing.T) {
	tests := []struct {
		name, uri, want string
		status          int
	}{
		{"no server there", "mongodb://127.0.0.1:1", "no MongoDB server answers", command.ExitFailed},
		{"not a URI", "mongodb://127.0.0.1:x", "store.mongodb.uri: is not valid", command.ExitUsage},
		{"not an option", "mongodb://127.0.0.1:1/?w=-3", "the MongoDB URI is not valid", command.ExitFailed},
		{"no such host", "mongodb://no-such-host.invalid", "no MongoDB server answers", command.ExitFailed},
		{"password", strings.Replace(mongotest.URI(t), "mongodb://", "mongodb://me:hush@", 1), "refuses the user name or password", command.ExitFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, stderr, status := run(t, "", "serve", "--listen", "127.0.0.1:0", "--mongodb-uri", tt.uri)
			if status != tt.status || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "hush") {
				t.Errorf("status %d: %s", status, stderr)
			}
		})
	}
}

// TestRegisteringOnManyInstances: what one instance changes holds on the other, and the trail of both has it,
// with what was changed in the database directly.
func TestRegisteringOnManyInstances(t *testing.T) {
	c := newOperatedCluster(t, 2)
	on := func(o operated, args ...string) []string {
		return append(args, "--server", o.operators, "--token", c.token)
	}
	first, second := c.instances[0], c.instances[1]
	var made credentials
	runJSON(t, &made, "", on(first, "client", "create", "new", "--grant", "client_credentials", "--grant", "password")...)
	check.Eventually(t, "the other instance knows the client", func() bool {
		status, _ := postForm(t, second.clients+"/token", made, url.Values{"grant_type": {"client_credentials"}})
		return status == http.StatusOK
	})
	runOK(t, adaPassword, on(first, "user", "create", "ada", "--password-stdin")...)
	status, _ := postForm(t, second.clients+"/token", made, url.Values{
		"grant_type": {"password"}, "username": {"ada"}, "password": {strings.TrimSpace(adaPassword)},
	})
	check.Equal(t, "a user of the first signs in at the second", status, http.StatusOK)
	for _, args := range [][]string{
		{"client", "update", "new", "--name", "New"},
		{"client", "rotate-secret", "new", "--overlap", "1h"},
		{"user", "passwd", "ada", "--password-stdin"},
		{"user", "list"},
		{"user", "show", "ada"},
		{"user", "delete", "ada"},
		{"client", "delete", "new"},
	} {
		runOK(t, "another staple for ada", on(second, args...)...)
	}
	var trail struct {
		Entries []struct {
			Action, Target string
			Actor          struct{ Store string }
		}
	}
	runJSON(t, &trail, "", on(first, "limits", "audit")...)
	var got []string
	for _, e := range trail.Entries {
		got = append(got, e.Action+" "+e.Target+strings.Repeat(" in the store", min(1, len(e.Actor.Store))))
	}
	want := []string{
		"delete clients/new", "delete users/ada", "password users/ada", "add_secret clients/new", "update clients/new",
		"create users/ada", "create clients/new", "create clients/shop in the store", "create clients/ops in the store",
	}
	check.Equal(t, "trail", got, want)
}
