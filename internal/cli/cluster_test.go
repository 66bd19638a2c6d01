package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"
)

// operatedCluster is servers on one database, with a client to limit and a token for operators.
type operatedCluster struct {
	instances []operated
	db        []string
	shop      credentials
	token     string
}

// start starts another instance.
func (c *operatedCluster) start(t *testing.T) operated {
	t.Helper()
	return serving(t, append([]string{"serve", "--issuer", "http://127.0.0.1:9096", "--migrate"}, c.db...)...)
}

func newOperatedCluster(t *testing.T, size int) *operatedCluster {
	t.Helper()
	db := database(t)
	c := &operatedCluster{db: db}
	for range size {
		c.instances = append(c.instances, c.start(t))
	}
	var ops credentials
	runJSON(t, &ops, "", append([]string{"client", "create", "ops", "--admin"}, db...)...)
	runJSON(t, &c.shop, "", append([]string{"client", "create", "shop"}, db...)...) // the last: who knows it knows both
	for _, o := range c.instances {
		check.Eventually(t, "the clients are known", func() bool { return c.status(t, o) == http.StatusOK })
	}
	c.token = askToken(t, c.instances[0].clients, ops)
	return c
}

// status is what an instance answers to a token request of the client.
func (c *operatedCluster) status(t *testing.T, o operated) int {
	t.Helper()
	status, _ := postForm(t, o.clients+"/token", c.shop, url.Values{"grant_type": {"client_credentials"}})
	return status
}

// limits runs a limits command that must succeed, and returns when it had.
func (c *operatedCluster) limits(t *testing.T, by operated, args ...string) time.Time {
	t.Helper()
	all := append([]string{"limits"}, args...)
	runOK(t, "", append(all, "--server", by.operators, "--token", c.token)...)
	return time.Now()
}

// promptly is how long a change may take to reach every instance.
const promptly = 2 * time.Second

// Three instances on one database: what is changed over the API of one of them,
// all act on within two seconds.
func TestEveryInstanceActsOnAChangeWithinTwoSeconds(t *testing.T) {
	c := newOperatedCluster(t, 3)
	instances := c.instances
	change := func(by operated, args ...string) time.Time {
		t.Helper()
		return c.limits(t, by, append(args, "--yes")...)
	}
	within := func(since time.Time, what string, want int) {
		t.Helper()
		for i, o := range instances {
			check.Eventually(t, what, func() bool { return c.status(t, o) == want })
			if late := time.Since(since); late > promptly {
				t.Errorf("%s: instance %d followed after %v", what, i+1, late)
			}
		}
	}
	within(change(instances[0], "set", "shop", "--client", "2/1h"), "the limit holds", http.StatusTooManyRequests)
	within(change(instances[1], "dry-run", "shop", "on"), "dry-run is on", http.StatusOK)
	within(change(instances[2], "unset", "shop", "--field", "mode"), "dry-run is off", http.StatusTooManyRequests)
	within(change(instances[0], "trust", "shop", "on"), "the client is trusted", http.StatusOK)
	change(instances[1], "trust", "shop", "off")

	change(instances[2], "set", "--tier", "gold", "--client", "2/1h")
	change(instances[2], "set", "shop", "--tier", "gold")
	within(change(instances[2], "unset", "shop", "--field", "client"), "the limit of the tier holds", http.StatusTooManyRequests)

	checkInstances(t, instances[1].operators, c.token)
}

// checkInstances asks one of the three for all of them.
func checkInstances(t *testing.T, server, token string) {
	t.Helper()
	var page struct {
		Instances []struct {
			Policies struct{ Current bool }
			Sync     *struct{ Degraded bool }
		}
	}
	check.Eventually(t, "all instances report, and are current", func() bool {
		runJSON(t, &page, "", "limits", "status", "--server", server, "--token", token)
		current := 0
		for _, i := range page.Instances {
			if i.Policies.Current && i.Sync != nil && !i.Sync.Degraded {
				current++
			}
		}
		return len(page.Instances) == 3 && current == 3
	})
	type entry struct{ Target string }
	var trail struct{ Entries []entry }
	runJSON(t, &trail, "", "limits", "audit", "--server", server, "--token", token)
	changes := slices.DeleteFunc(trail.Entries, func(e entry) bool { return strings.HasPrefix(e.Target, "clients/") })
	check.Equal(t, "changes of limits", len(changes), 8)
}

// banned reports whether an instance answers that the client is banned.
func (c *operatedCluster) banned(t *testing.T, o operated) bool {
	t.Helper()
	status, body := postForm(t, o.clients+"/token", c.shop, url.Values{"grant_type": {"client_credentials"}})
	return status == http.StatusTooManyRequests && strings.Contains(body, "temporarily banned")
}

// listed reports whether an instance lists the client among who is banned. Unlike a request, it is no denial.
func (c *operatedCluster) listed(t *testing.T, o operated) bool {
	t.Helper()
	return strings.Contains(c.show(t, o, "bans", "shop", "-o", "json"), `"client_id"`)
}

// Within waits until every instance says so, and fails if one does later than promptly. One request to each must then be
// answered like that.
func (c *operatedCluster) within(t *testing.T, since time.Time, what string, banned bool) {
	t.Helper()
	for i, o := range c.instances {
		check.Eventually(t, what, func() bool { return c.listed(t, o) == banned })
		if late := time.Since(since); late > promptly {
			t.Errorf("%s: instance %d followed after %v", what, i+1, late)
		}
		check.Equal(t, what, c.banned(t, o), banned)
	}
}

// provoke goes on until one of the instances bans the client, and returns when that was.
func (c *operatedCluster) provoke(t *testing.T, o operated) time.Time {
	t.Helper()
	check.Eventually(t, "it bans", func() bool { return c.banned(t, o) })
	return time.Now()
}

// follow waits until every instance has the policies that the first one has: one without the ban's policy knows of
// the ban and does not enforce it.
func (c *operatedCluster) follow(t *testing.T) {
	t.Helper()
	revision := func(o operated) string {
		_, rest, _ := strings.Cut(page(t, o.operators+"/metrics"), "\noauth_config_revision{config=\"policies\"} ")
		text, _, _ := strings.Cut(rest, "\n")
		return text
	}
	want := revision(c.instances[0])
	for _, o := range c.instances[1:] {
		check.Eventually(t, "policies "+want, func() bool { return revision(o) == want })
	}
}

// ban is the policy of the client in these tests.
var ban = []string{"set", "shop", "--client", "2/1h", "--ban", "denials=5,within=60s,for=1h,factor=2,max=24h", "--yes"}

// Whoever goes on after being denied at one instance is banned at all within two seconds, also at one that is
// started anew, until the ban is lifted at any of them.
func TestEveryInstanceBansWithinTwoSeconds(t *testing.T) {
	c := newOperatedCluster(t, 2)
	first, second := c.instances[0], c.instances[1]
	c.limits(t, first, ban...)
	c.follow(t)
	c.within(t, c.provoke(t, first), "it is banned", true)

	second.stop(t)
	c.instances[1] = c.start(t)
	check.Equal(t, "banned after a restart", c.banned(t, c.instances[1]), true)

	check.Equal(t, "listed", strings.Contains(c.show(t, c.instances[1], "bans", "shop"), "shop"), true)
	c.within(t, c.limits(t, c.instances[1], "unban", "shop", "--reason", "fixed"), "the ban is lifted", false)
	trail := c.show(t, first, "audit", "--target", "bans/shop")
	check.Equal(t, "audit trail", strings.Contains(trail, "unban") && strings.Contains(trail, "fixed"), true)

	c.within(t, c.provoke(t, c.instances[1]), "it is banned again", true)
	has(t, table(c.show(t, first, "bans")), " 2h 1\n")
	c.limits(t, first, "unban", "shop", "--forget")
	c.limits(t, first, "set", "shop", "--ban", "off", "--yes")
	for range 10 {
		check.Equal(t, "banned without a ban", c.banned(t, first), false)
	}
}

// show runs a limits command that must succeed, and returns what it prints.
func (c *operatedCluster) show(t *testing.T, by operated, args ...string) string {
	t.Helper()
	stdout, stderr, status := run(t, "", append(append([]string{"limits"}, args...), "--server", by.operators, "--token", c.token)...)
	if status != command.ExitOK {
		t.Fatalf("%v: %s", args, stderr)
	}
	return stdout
}

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

// revocable is two instances on one database with an admin client, a client for the password grant
// and a user.
type revocable struct {
	t           *testing.T
	db          []string
	instances   []operated
	ops, legacy credentials
}

func newRevocable(t *testing.T, flags ...string) *revocable {
	t.Helper()
	db := database(t)
	r := &revocable{t: t, db: db}
	runOK(t, "", r.on("migrate", "up")...)
	runJSON(t, &r.ops, "", r.on("client", "create", "ops", "--admin")...)
	runJSON(t, &r.legacy, "", r.on("client", "create", "legacy", "--grant", "password", "--grant", "refresh_token")...)
	addUsers(t, db, "ada")
	for range 2 {
		r.instances = append(r.instances, serving(t, append(append([]string{"serve", "--issuer", "http://127.0.0.1:9096"}, flags...), db...)...))
	}
	return r
}

// on appends the flags for the database to a command line.
func (r *revocable) on(args ...string) []string { return append(args, r.db...) }

// userTokens is the answer to a password grant.
type userTokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
}

// signIn asks an instance for tokens of the user.
func (r *revocable) signIn(by operated, password string) (tokens userTokens) {
	r.t.Helper()
	_, body := postForm(r.t, by.clients+"/token", r.legacy, url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {password}})
	check.OK(r.t, json.Unmarshal([]byte(body), &tokens))
	return tokens
}

// active asks an instance, as the client of the token, what it is worth.
func (r *revocable) active(by operated, as credentials, token string) bool {
	r.t.Helper()
	status, body := postForm(r.t, by.clients+"/introspect", as, url.Values{"token": {token}})
	check.Equal(r.t, "status of the introspection", status, http.StatusOK)
	return strings.Contains(body, `"active":true`)
}

// admin is the status that the admin API answers a token with.
func (r *revocable) admin(by operated, token string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, by.operators+"/admin/v1/settings", http.NoBody)
	check.OK(r.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	status, _ := send(r.t, req)
	return status
}

// After rotate-secret, a token that was issued under the old secret lives on; with --revoke it ends on
// every instance within two seconds, and so does what client revoke is used on.
//
// Attack (revocation): Tokens after a revocation. All instances refuse them within two seconds.
// Also grants.TestRevokedClient, grants.TestRevokedUser, secret.TestStamps.
func TestRevokedClientEverywhere(t *testing.T) {
	r := newRevocable(t)
	first := askToken(t, r.instances[0].clients, r.ops)
	for _, o := range r.instances {
		check.Equal(t, "status", r.admin(o, first), http.StatusOK)
	}
	runJSON(t, &r.ops, "", r.on("client", "rotate-secret", "ops", "--revoke")...)
	done := time.Now()
	for i, o := range r.instances {
		check.Eventually(t, "the token is refused", func() bool { return r.admin(o, first) == http.StatusUnauthorized })
		if late := time.Since(done); late > promptly {
			t.Errorf("instance %d followed after %v", i+1, late)
		}
		check.Equal(t, "active", r.active(o, r.ops, first), false)
	}
	r.good() // at once

	tokens := r.signIn(r.instances[0], adaPassword)
	check.Equal(t, "active", r.active(r.instances[1], r.legacy, tokens.Access), true)
	var revoked credentials
	runJSON(t, &revoked, "", r.on("client", "revoke", "legacy")...)
	check.Equal(t, "revoked", revoked.ClientID, "legacy")
	for _, o := range r.instances {
		check.Eventually(t, "the access token is worthless", func() bool { return !r.active(o, r.legacy, tokens.Access) })
		check.Equal(t, "active", r.active(o, r.legacy, tokens.Refresh), false)
	}
	again := r.signIn(r.instances[1], adaPassword)
	check.Equal(t, "active", r.active(r.instances[0], r.legacy, again.Access), true)
}

// status is what an instance answers to a token request.
func (r *revocable) status(by operated, as credentials) int {
	r.t.Helper()
	status, _ := postForm(r.t, by.clients+"/token", as, url.Values{"grant_type": {"client_credentials"}})
	return status
}

// good checks that all instances accept what each of them issues to the admin client.
func (r *revocable) good() {
	r.t.Helper()
	for _, by := range r.instances {
		token := askToken(r.t, by.clients, r.ops)
		for _, o := range r.instances {
			check.Equal(r.t, "active", r.active(o, r.ops, token), true)
			check.Equal(r.t, "status", r.admin(o, token), http.StatusOK)
		}
	}
}
