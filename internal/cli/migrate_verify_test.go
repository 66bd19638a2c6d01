package cli

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/store/mongo/mongotest"
)

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

// TestMigrateVerifyFinds: where counts would not be exact, the exit status is 1, and the table and the JSON say
// which check failed and what follows. The table is there also if an error ends the checks.
func TestMigrateVerifyFinds(t *testing.T) {
	db := altered(t, mongotest.SequenceIgnored)
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
	if len(failed) != 1 || !strings.HasPrefix(failed[0], "4   fallback filter by the writer's sequence") || !strings.Contains(failed[0], "; seen: ") {
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
		{"bulks always stop", mongotest.AlwaysOrdered, "WARN", "unordered bulk"},
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
