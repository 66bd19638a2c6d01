package limits

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
)

// TestAuditOfSeveralTargets: each has a line, the first with who, when and why.
func TestAuditOfSeveralTargets(t *testing.T) {
	var out bytes.Buffer
	l := &limits{API: connect.API{Env: &command.Env{Out: &out}}}
	null, trusted := json.RawMessage("null"), json.RawMessage(`{"trusted":true}`)
	err := l.auditTable(adminapi.Audit{Entries: []adminapi.AuditEntry{
		{
			At: time.Now(), Actor: clientcfg.Actor{ClientID: "ops"}, Action: "update", Target: "policies/a", Before: null, After: trusted, Reason: "ticket",
			More: []clientcfg.Change{{Target: "policies/b", Before: null, After: trusted}, {Target: "policies/c", Before: trusted, After: null}},
		},
		{At: time.Now(), Actor: clientcfg.Actor{ClientID: "ops"}, Action: "delete", Target: "settings", Before: null, After: null},
	}})
	check.OK(t, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "ops") || !strings.Contains(lines[1], "ticket") || strings.Contains(lines[2], "ops") ||
		!strings.Contains(lines[2], "update policies/b") || !strings.Contains(lines[3], "no trusted") {
		t.Errorf("the table is\n%s", out.String())
	}
}

// TestAuditOfAnUnreadableEntry: it has a line among the others, and what is wrong is said beside.
func TestAuditOfAnUnreadableEntry(t *testing.T) {
	var out, notes bytes.Buffer
	l := &limits{API: connect.API{Env: &command.Env{Out: &out, ErrOut: &notes}}}
	var page adminapi.Audit
	err := json.Unmarshal([]byte(`{"entries":[{"version":8,"action":"update","target":"settings"},{"version":7,"unreadable":"unexpected EOF"},`+
		`{"version":6,"actor":{"client_id":"ops"},"action":"update","target":"policies/shop","reason":"ticket","unreadable":"of a newer release"}]}`), &page)
	check.OK(t, err)
	check.OK(t, l.auditTable(page))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "update settings") || !strings.HasPrefix(lines[2], "7 ") || !strings.Contains(lines[2], "unreadable") {
		t.Errorf("the table is\n%s", out.String())
	}
	if last := strings.Fields(lines[3]); strings.Join(last[2:], " ") != "ops update policies/shop unreadable ticket" {
		t.Errorf("the last line is %q", last)
	}
	for _, part := range []string{"Entry 7 of the audit trail is unreadable: unexpected EOF.", "of a newer release"} {
		if !strings.Contains(notes.String(), part) {
			t.Errorf("the notes lack %q:\n%s", part, notes.String())
		}
	}
}
