package cli

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

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
	shop = newClient(t, "shop", flags...)
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

// altered returns the flags for a fresh database behind a proxy.
func altered(t *testing.T, server mongotest.Alteration) []string {
	t.Helper()
	flags := database(t)
	proxy := mongotest.NewProxy(t, flags[1])
	proxy.Alter(server)
	flags[1] = proxy.URI
	return flags
}

// shownVerification is the answer of migrate verify -o json.
type shownVerification struct {
	Exact  bool
	Checks []struct {
		Number                         int
		Check, Status, Detail, Follows string
		Exact                          bool
	}
}

func TestMigrateVerify(t *testing.T) {
	db := database(t)
	out, stderr, status := run(t, "", append([]string{"migrate", "verify"}, db...)...)
	lines := strings.Split(out, "\n")
	if status != command.ExitOK || stderr != "" || !strings.HasPrefix(lines[0], "    CHECK ") {
		t.Fatalf("status %d: %s\n%s", status, stderr, out)
	}
	if row := strings.Fields(lines[2]); row[0] != "2" || row[len(row)-1] != "ok" {
		t.Errorf("the row of the second check: %s", lines[2])
	}
	var shown shownVerification
	runJSON(t, &shown, "", append([]string{"migrate", "verify", "--wait-ttl"}, db...)...)
	if !shown.Exact || len(shown.Checks) != len(lines)-2 {
		t.Fatalf("%+v", shown)
	}
	for _, c := range shown.Checks {
		if !strings.Contains(out, c.Check) || c.Status == "" || (c.Status == "ok") == (c.Follows != "") {
			t.Errorf("%+v", c)
		}
		if c.Check == "TTL indexes" && !strings.Contains(c.Detail, "deleted within") {
			t.Errorf("after waiting: %+v", c)
		}
	}
	if left := collectionsOf(t, db); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func collectionsOf(t *testing.T, db []string) []string {
	t.Helper()
	names, err := mongotest.Connect(t, db[1]).Database(db[3]).ListCollectionNames(t.Context(), bson.D{})
	check.OK(t, err)
	return names
}

// alwaysOrdered is a server that stops every bulk at its first error.
var alwaysOrdered = mongotest.Alteration{Request: func(command bson.D) bson.D { return mongotest.With(command, "ordered", true) }}

// TestMigrateVerifyFinds: where counts would not be exact, the exit status is 1, and the table and the JSON say
// which check failed and what follows. The table is there also if an error ends the checks.
func TestMigrateVerifyFinds(t *testing.T) {
	db := altered(t, alwaysOrdered)
	out, stderr, status := run(t, "", append([]string{"migrate", "verify"}, db...)...)
	if status != command.ExitFailed || !strings.Contains(stderr, "not be exact") {
		t.Errorf("status %d: %s", status, stderr)
	}
	var failed []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "  failed  ") {
			failed = append(failed, line)
		}
	}
	if len(failed) != 1 || !strings.HasPrefix(failed[0], "1   unordered bulk goes on and names each error") || !strings.Contains(failed[0], "; seen: ") {
		t.Errorf("failed: %q", failed)
	}
	out, _, status = run(t, "", append([]string{"migrate", "verify", "-o", "json"}, db...)...)
	if status != command.ExitFailed || !strings.Contains(out, `"exact": false,`) || strings.Count(out, `"status": "failed"`) != 1 {
		t.Errorf("status %d: %s", status, out)
	}

	db = altered(t, mongotest.Refuses("insert", 13, "Unauthorized", "not allowed"))
	out, stderr, status = run(t, "", append([]string{"migrate", "verify"}, db...)...)
	if status != command.ExitFailed || !strings.Contains(stderr, "not allowed") || !strings.Contains(out, "unchecked") {
		t.Errorf("no right to insert: status %d: %s\n%s", status, stderr, out)
	}
}

// TestMigrateVerifyInterrupted: Ctrl-C ends the wait, and the scratch collection
// is removed all the same.
func TestMigrateVerifyInterrupted(t *testing.T) {
	db := altered(t, mongotest.Alteration{Request: func(c bson.D) bson.D {
		docs := mongotest.Get[bson.A](c, "documents")
		if c[0].Key != "insert" || mongotest.Get[string](docs[0].(bson.D), "_id") != "expired" {
			return c
		}
		later := mongotest.With(docs[0].(bson.D), "expire", time.Now().Add(time.Hour)) // nothing to delete
		return mongotest.With(c, "documents", bson.A{later})
	}})
	p := launch(t, append([]string{"migrate", "verify", "--wait-ttl"}, db...)...)
	check.Eventually(t, "it says that it waits", func() bool {
		return strings.Contains(p.log.String(), "waiting for the server to delete an expired document: 0s of 3m0s")
	})
	if left := collectionsOf(t, db); len(left) != 1 || !strings.HasPrefix(left[0], "verify_scratch_") {
		t.Errorf("while it waits there is %v", left)
	}
	check.OK(t, p.Process.Signal(syscall.SIGINT))
	if status := p.status(t); status != command.ExitFailed {
		t.Errorf("status %d: %s", status, p.log.String())
	}
	if left := collectionsOf(t, db); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestServeVerifies: a database on which counts would not be exact is warned
// of, one that does not let the checks write is noted, and neither keeps the
// server from starting.
func TestServeVerifies(t *testing.T) {
	refuseScratch := mongotest.Alteration{Answer: func(c bson.D) bson.D {
		if c[0].Key == "update" && c[0].Value == "ratelimits" {
			return mongotest.Refusal(13, "Unauthorized", "not authorized on ratelimits")
		}
		return nil
	}}
	for _, tt := range []struct {
		name   string
		server mongotest.Alteration
		level  string // of the line about the verification
		says   string
	}{
		{"a sound database", mongotest.Alteration{}, "", ""},
		{"bulks always stop", alwaysOrdered, "WARN", "unordered bulk"},
		{"no right to write", refuseScratch, "INFO", "not authorized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := altered(t, tt.server)
			p := serving(t, append([]string{"serve", "--migrate", "--issuer", "http://127.0.0.1:9096"}, db...)...)
			check.Eventually(t, "it says what it found", func() bool {
				return tt.level == "" || strings.Contains(p.log.String(), "database verification")
			})
			p.stop(t)
			var lines []string
			for line := range strings.Lines(p.log.String()) {
				if strings.Contains(line, "database verification") {
					lines = append(lines, line)
				}
			}
			switch {
			case tt.level == "" && len(lines) == 0:
			case tt.level == "" || len(lines) != 1:
				t.Errorf("lines about it: %q", lines)
			case !strings.Contains(lines[0], "level="+tt.level), !strings.Contains(lines[0], "oauth-server migrate verify"), !strings.Contains(lines[0], tt.says):
				t.Errorf("it says %q", lines[0])
			}
		})
	}
}

// losing returns the flags for the database behind a proxy that passes on the first insertion, and no answer to it or anything
// that follows.
func losing(t *testing.T, db []string) []string {
	t.Helper()
	proxy := mongotest.NewProxy(t, db[1])
	var lost atomic.Bool
	proxy.Decide(func(name string) mongotest.Fault {
		switch {
		case lost.Load():
			return mongotest.LoseRequest
		case name == "insert":
			lost.Store(true)
			return mongotest.LoseReply
		}
		return mongotest.Pass
	})
	return []string{"--mongodb-uri", proxy.URI, "--mongodb-database", db[3]}
}

// A change was made, and its answer was lost: the command says that it may have been made, and what to do.
func TestUnansweredChanges(t *testing.T) {
	t.Parallel() // it mostly waits
	db, _ := databaseWithShop(t)
	on := func(db []string, args string) []string { return append(strings.Fields(args), db...) }
	addUsers(t, db, "bob")
	for _, test := range []struct {
		args, stdin string
		says        string
		then, shows string // what shows that it was made
	}{
		{
			"client create web", "", "the client may have been created: check with oauth-server client show 'web'; its generated secret is lost: get a new one with client rotate-secret 'web'",
			"client show web", "web",
		},
		{
			"client rotate-secret shop --overlap 1h", "", "the client may have been changed: check with oauth-server client show 'shop'; a new secret is lost",
			"client show shop", "former_secret_until",
		},
		{
			"client delete shop", "", "the client may have been deleted: check with oauth-server client show 'shop'",
			"client show shop", "does not exist",
		},
		{
			"user create ada --password-stdin", adaPassword, "the user may have been created: check with oauth-server user show",
			"user list", "ada",
		},
		{
			"user passwd bob --password-stdin", "another " + adaPassword, `the user "bob" may have been changed: it is safe to run the command again`,
			"user list", "bob",
		},
		{
			"user delete ada", "", `the user may have been deleted: check with oauth-server user show 'ada'`,
			"user delete ada", `user "ada" does not exist`,
		},
	} {
		runFails(t, command.ExitFailed, test.says, test.stdin, on(losing(t, db), test.args)...)
		check.Eventually(t, test.args+" is made", func() bool {
			stdout, stderr, _ := run(t, "", on(db, test.then)...)
			return strings.Contains(stdout+stderr, test.shows)
		})
	}
	// What the store refuses is no such case.
	_, stderr, _ := run(t, "", on(db, "client create web")...)
	if withoutPlace(stderr) != "oauth-server: client \"web\" already exists\n" {
		t.Errorf("a client that exists: %s", stderr)
	}
}
