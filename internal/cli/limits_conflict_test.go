package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"
)

// balanced returns the address of a load balancer that sends each request to the next instance.
func (c *operatedCluster) balanced(t *testing.T) operated {
	t.Helper()
	var next atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		target, err := url.Parse(c.instances[next.Add(1)%int64(len(c.instances))].operators)
		check.OK(t, err)
		r.SetURL(target)
	}})
	t.Cleanup(proxy.Close)
	return operated{operators: proxy.URL}
}

// Commands run one after another, and each request goes to another instance. None is refused,
// because each is based on the result of the one before.
func TestCommandsThroughALoadBalancerAreNotRefused(t *testing.T) {
	c := newOperatedCluster(t, 2)
	through := c.balanced(t)
	for i := range 4 {
		n := strconv.Itoa(1000 + i)
		c.limits(t, through, "set", "shop", "--client", n+"/1h", "--note", "round "+n, "--yes")
		c.limits(t, through, "candidate", "set", "shop", "--client", n+"/1h")
		c.limits(t, through, "set", "--user", n+"/1h", "--yes")
		var shown struct{ Note string }
		runJSON(t, &shown, "", "limits", "get", "shop", "--server", through.operators, "--token", c.token)
		check.Equal(t, "note", shown.Note, "round "+n)
		for _, name := range []string{"A " + n, "B " + n} {
			runOK(t, "", "client", "update", "shop", "--name", name, "--server", through.operators, "--token", c.token)
		}
	}
	var trail struct{ Entries []adminapi.AuditEntry }
	runJSON(t, &trail, "", "limits", "audit", "--limit", "1000", "--server", through.operators, "--token", c.token)
	check.Equal(t, "changes", len(trail.Entries), 4*5+2) // and two clients in the store
}

// A change that another one overtakes is refused, and one sentence says who has changed what.
func TestOvertakenChangeSaysByWhom(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	change := func(version int64, action, before, after string) adminapi.AuditEntry {
		e := adminapi.AuditEntry{Version: version, At: at, Action: action, Actor: clientcfg.Actor{ClientID: "ops-anna"}}
		e.Before, e.After = json.RawMessage(before), json.RawMessage(after)
		return e
	}
	ten, twenty := `{"client":[{"requests":10,"window":"60s"}]}`, `{"client":[{"requests":20,"window":"60s"}]}`
	for _, tt := range []struct {
		name, target string
		changes      []adminapi.AuditEntry
		want         string
	}{
		{
			"a policy", "policies/shop",
			[]adminapi.AuditEntry{change(412, "update", ten, twenty)},
			"shop: changed by ops-anna 3 s ago (change 412: client 10/60s -> 20/60s); check it and run the command again",
		},
		{
			"removed, after others", "policies/shop",
			[]adminapi.AuditEntry{change(9, "delete", ten, "null"), change(8, "update", ten, twenty), change(7, "update", ten, ten)},
			"shop: removed by ops-anna 3 s ago (change 9: no client (was 10/60s)), after 2 other changes; check it and run the command again",
		},
		{
			"the settings", "settings",
			[]adminapi.AuditEntry{change(2, "update", `{"mode":"off"}`, `{"mode":"dry_run\u001b[2J"}`)},
			"the settings for all clients: changed by ops-anna 3 s ago (change 2: mode off -> dry_run\\x1b[2J); check it and run the command again",
		},
		{
			"a candidate", "candidates/_default",
			[]adminapi.AuditEntry{change(3, "update", "null", ten)},
			"the candidate for the default limits: changed by ops-anna 3 s ago (change 3: client 10/60s); check it and run the command again",
		},
		{
			"a user", "users/ada",
			[]adminapi.AuditEntry{change(7, "operator", "null", `{"operator":"read"}`)},
			"ada: changed by ops-anna 3 s ago (change 7: operator read); check it and run the command again",
		},
		{
			"another file", "policies/shop",
			[]adminapi.AuditEntry{},
			"nothing was changed: another file; check limits status and run the command again",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refusal, err := json.Marshal(adminapi.Problem{
				Title: "Changed meanwhile", Detail: "another file",
				Conflict: &adminapi.Conflict{Target: tt.target, Now: at.Add(3 * time.Second), Changes: tt.changes},
			})
			check.OK(t, err)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"1"`)
				w.Header().Set("Age", "90")
				if r.Method == http.MethodPatch && !r.URL.Query().Has("validate") {
					w.WriteHeader(http.StatusPreconditionFailed)
					_, _ = w.Write(refusal)
					return
				}
				_, _ = w.Write([]byte(`{}`))
			}))
			t.Cleanup(server.Close)
			_, stderr, status := run(t, "", "limits", "dry-run", "on", "--token", "x", "--issuer", "http://127.0.0.1", "--server", server.URL)
			want := "The server cannot reach its store. The state shown is from 1 min ago.\noauth-server: " + tt.want + "\n"
			if status != command.ExitFailed || stderr != want {
				t.Errorf("exit status %d: %s\nwant: %s", status, stderr, want)
			}
		})
	}
}
