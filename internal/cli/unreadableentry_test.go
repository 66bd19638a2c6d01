package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/store/mongo/mongotest"
)

// The newest entry of the audit trail and the policy that it made are edited by hand. Both instances serve on: the one that
// runs with the limits that it has, and one that starts with those of the entry before, which it says. The trail shows
// the entry among the others. The ordinary command repairs the policy.
func TestUnreadableEntryOfADatabase(t *testing.T) {
	r := newRevocable(t)
	runs := r.instances[0]
	limits := func(by operated, args ...string) (stdout, stderr string) {
		t.Helper()
		args = append([]string{"limits"}, append(args, "--server", by.operators, "--token", askToken(t, runs.clients, r.ops))...)
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
	starts := serving(t, append([]string{"serve", "--issuer", "http://127.0.0.1:9096"}, r.db...)...)
	check.Equal(t, "limit of the one that runs", strings.Contains(outputOf(limits(runs, "get", "legacy")), "80/60s"), true)
	check.Equal(t, "limit of the one that starts", strings.Contains(outputOf(limits(starts, "get", "legacy")), "70/60s"), true)
	status, _ := postForm(t, starts.clients+"/token", r.ops, url.Values{"grant_type": {"client_credentials"}})
	check.Equal(t, "status of a token request", status, http.StatusOK)
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
	check.Equal(t, "its limit", strings.Contains(outputOf(limits(starts, "get", "legacy")), "80/60s"), true)
}

type listedEntry struct {
	Version            int64
	Target, Unreadable string
}

func outputOf(stdout, _ string) string { return stdout }
