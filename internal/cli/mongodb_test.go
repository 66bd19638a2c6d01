package cli

import (
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

func TestWhatIsWrongWithTheDatabase(t *testing.T) {
	tests := []struct {
		name, uri, want string
		status          int
	}{
		{"no server there", "mongodb://127.0.0.1:1", "no MongoDB server answers", command.ExitFailed},
		{"not a URI", "mongodb://127.0.0.1:x", "store.mongodb.uri: is not valid", command.ExitUsage},
		{"not an option", "mongodb://127.0.0.1:1/?w=-3", "the MongoDB URI is not valid", command.ExitFailed},
		{"no such host", "mongodb://no-such-host.invalid", "no MongoDB server answers", command.ExitFailed},
		{"password", strings.Replace(mongotest.URI(t), "mongodb://", "mongodb://me:hush@", 1), "rejects the user name or password", command.ExitFailed},
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
