package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
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

// cluster is servers on one database, with an admin client and its token, a client to limit, and a client and a user for the
// password grant.
type cluster struct {
	t                 *testing.T
	db                []string // flags
	instances         []operated
	ops, shop, legacy credentials
	token             string
}

func newCluster(t *testing.T, size int) *cluster {
	t.Helper()
	c := &cluster{t: t, db: database(t)}
	runOK(t, "", c.on("migrate", "up")...)
	c.ops, c.shop = newClient(t, "ops --admin", c.db...), newClient(t, "shop", c.db...)
	c.legacy = newClient(t, "legacy --grant password --grant refresh_token", c.db...)
	addUsers(t, c.db, "ada")
	for range size {
		c.instances = append(c.instances, c.start())
	}
	c.token = askToken(t, c.instances[0].clients, c.ops)
	return c
}

// start starts another instance.
func (c *cluster) start() operated {
	c.t.Helper()
	return serving(c.t, c.on("serve", "--issuer", "http://127.0.0.1:9096")...)
}

// on appends the flags for the database to a command line.
func (c *cluster) on(args ...string) []string { return append(args, c.db...) }

// show runs a limits command that must succeed, and returns what it prints.
func (c *cluster) show(by operated, args ...string) string {
	c.t.Helper()
	return runOK(c.t, "", append(append([]string{"limits"}, args...), "--server", by.operators, "--token", c.token)...)
}

// limits runs a limits command that must succeed, and returns when it had.
func (c *cluster) limits(by operated, args ...string) time.Time {
	c.t.Helper()
	c.show(by, args...)
	return time.Now()
}

// follow waits until every instance is in a state, and fails if one is later than promptly.
func (c *cluster) follow(since time.Time, what string, holds func(o operated) bool) {
	c.t.Helper()
	for i, o := range c.instances {
		check.Eventually(c.t, what, func() bool { return holds(o) })
		if late := time.Since(since); late > promptly {
			c.t.Errorf("%s: instance %d followed after %v", what, i+1, late)
		}
	}
}

// promptly is how long a change may take to reach every instance.
const promptly = 2 * time.Second

// Three instances on one database: what is changed over the API of one of them,
// all act on within two seconds.
func TestEveryInstanceActsOnAChangeWithinTwoSeconds(t *testing.T) {
	c := newCluster(t, 3)
	instances := c.instances
	change := func(by operated, args ...string) time.Time {
		t.Helper()
		return c.limits(by, append(args, "--yes")...)
	}
	within := func(since time.Time, what string, want int) {
		t.Helper()
		c.follow(since, what, func(o operated) bool { return tokenStatus(t, o.clients, c.shop) == want })
	}
	within(change(instances[0], "set", "shop", "--client", "2/1h"), "the limit holds", http.StatusTooManyRequests)
	within(change(instances[1], "dry-run", "shop", "on"), "dry-run is on", http.StatusOK)
	within(change(instances[2], "unset", "shop", "--field", "mode"), "dry-run is off", http.StatusTooManyRequests)
	within(change(instances[0], "trust", "shop", "on"), "the client is trusted", http.StatusOK)
	change(instances[1], "trust", "shop", "off")

	change(instances[2], "set", "--tier", "gold", "--client", "2/1h")
	change(instances[2], "set", "shop", "--tier", "gold")
	within(change(instances[2], "unset", "shop", "--field", "client"), "the limit of the tier holds", http.StatusTooManyRequests)

	at := []string{"--server", instances[1].operators, "--token", c.token}
	var page struct {
		Instances []struct {
			Policies struct{ Current bool }
			Sync     *struct{ Degraded bool }
		}
	}
	check.Eventually(t, "all instances report, and are current", func() bool {
		runJSON(t, &page, "", append([]string{"limits", "status"}, at...)...)
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
	runJSON(t, &trail, "", append([]string{"limits", "audit"}, at...)...)
	changes := slices.DeleteFunc(trail.Entries, func(e entry) bool { return !regexp.MustCompile("^(policies|tiers)/").MatchString(e.Target) })
	check.Equal(t, "changes of limits", len(changes), 8)
}

// banned reports whether an instance answers that the client is banned.
func (c *cluster) banned(o operated) bool {
	c.t.Helper()
	status, body := postForm(c.t, o.clients+"/token", c.shop, url.Values{"grant_type": {"client_credentials"}})
	return status == http.StatusTooManyRequests && strings.Contains(body, "temporarily banned")
}

// within waits until every instance lists the ban, or lists it no longer, which is no denial as a request would be. One request
// to each must then be answered like that.
func (c *cluster) within(since time.Time, what string, banned bool) {
	c.t.Helper()
	c.follow(since, what, func(o operated) bool {
		return strings.Contains(c.show(o, "bans", "shop", "-o", "json"), `"client_id"`) == banned
	})
	for _, o := range c.instances {
		check.Equal(c.t, what, c.banned(o), banned)
	}
}

// provoke goes on until one of the instances bans the client, and returns when that was.
func (c *cluster) provoke(o operated) time.Time {
	c.t.Helper()
	check.Eventually(c.t, "it bans", func() bool { return c.banned(o) })
	return time.Now()
}

// samePolicies waits until every instance has the policies that the first one has: one without the ban's policy knows of
// the ban and does not enforce it.
func (c *cluster) samePolicies() {
	c.t.Helper()
	revision := func(o operated) string {
		return regexp.MustCompile(`\noauth_config_revision\{config="policies"\} .*`).FindString(page(c.t, o.operators+"/metrics"))
	}
	want := revision(c.instances[0])
	for _, o := range c.instances[1:] {
		check.Eventually(c.t, "policies "+want, func() bool { return revision(o) == want })
	}
}

// Whoever goes on after being denied at one instance is banned at all within two seconds, also at one that is
// started anew, until the ban is lifted at any of them.
func TestEveryInstanceBansWithinTwoSeconds(t *testing.T) {
	c := newCluster(t, 2)
	first, second := c.instances[0], c.instances[1]
	c.limits(first, "set", "shop", "--client", "2/1h", "--ban", "denials=5,within=60s,for=1h,factor=2,max=24h", "--yes")
	c.samePolicies()
	c.within(c.provoke(first), "it is banned", true)

	second.stop(t)
	second = c.start()
	c.instances[1] = second
	check.Equal(t, "banned after a restart", c.banned(second), true)

	has(t, c.show(second, "bans", "shop"), "shop")
	c.within(c.limits(second, "unban", "shop", "--reason", "fixed"), "the ban is lifted", false)
	has(t, c.show(first, "audit", "--target", "bans/shop"), "unban", "fixed")

	c.within(c.provoke(second), "it is banned again", true)
	has(t, table(c.show(first, "bans")), " 2h 1\n")
	c.limits(first, "unban", "shop", "--forget")
	c.limits(first, "set", "shop", "--ban", "off", "--yes")
	for range 10 {
		check.Equal(t, "banned without a ban", c.banned(first), false)
	}
}

// balanced returns the address of a load balancer that sends each request to the next instance.
func (c *cluster) balanced() operated {
	t := c.t
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
	c := newCluster(t, 2)
	through := c.balanced()
	for i := range 4 {
		n := strconv.Itoa(1000 + i)
		c.limits(through, "set", "shop", "--client", n+"/1h", "--note", "round "+n, "--yes")
		c.limits(through, "candidate", "set", "shop", "--client", n+"/1h")
		c.limits(through, "set", "--user", n+"/1h", "--yes")
		var shown struct{ Note string }
		runJSON(t, &shown, "", "limits", "get", "shop", "--server", through.operators, "--token", c.token)
		check.Equal(t, "note", shown.Note, "round "+n)
		for _, name := range []string{"A " + n, "B " + n} {
			runOK(t, "", "client", "update", "shop", "--name", name, "--server", through.operators, "--token", c.token)
		}
	}
	var trail struct{ Entries []adminapi.AuditEntry }
	runJSON(t, &trail, "", "limits", "audit", "--limit", "1000", "--server", through.operators, "--token", c.token)
	check.Equal(t, "changes", len(trail.Entries), 4*5+4) // and three clients and a user in the store
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

// userTokens is the answer to a password grant.
type userTokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
}

// signIn asks an instance for tokens of the user.
func (c *cluster) signIn(by operated) (tokens userTokens) {
	c.t.Helper()
	_, body := postForm(c.t, by.clients+"/token", c.legacy, url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {adaPassword}})
	check.OK(c.t, json.Unmarshal([]byte(body), &tokens))
	return tokens
}

// active reports whether an instance tells the client of a token that it is valid.
func (c *cluster) active(by operated, as credentials, token string) bool {
	c.t.Helper()
	return introspected(c.t, by.clients, as, token)
}

// admin is the status that the admin API answers a token with.
func (c *cluster) admin(by operated, token string) int {
	c.t.Helper()
	return adminStatus(c.t, by.operators, token)
}

// After rotate-secret, a token that was issued under the old secret lives on; with --revoke it ends on
// every instance within two seconds, and so does what client revoke is used on.
//
// Attack (revocation): Tokens after a revocation. All instances refuse them within two seconds.
// Also grants.TestRevokedClient, grants.TestRevokedUser, secret.TestStamps.
func TestRevokedClientEverywhere(t *testing.T) {
	r := newCluster(t, 2)
	first := r.token
	for _, o := range r.instances {
		check.Equal(t, "status", r.admin(o, first), http.StatusOK)
	}
	runJSON(t, &r.ops, "", r.on("client", "rotate-secret", "ops", "--revoke")...)
	r.follow(time.Now(), "the token is refused", func(o operated) bool { return r.admin(o, first) == http.StatusUnauthorized })
	for _, o := range r.instances {
		check.Equal(t, "active", r.active(o, r.ops, first), false)
	}
	r.good() // at once

	tokens := r.signIn(r.instances[0])
	check.Equal(t, "active", r.active(r.instances[1], r.legacy, tokens.Access), true)
	var revoked credentials
	runJSON(t, &revoked, "", r.on("client", "revoke", "legacy")...)
	check.Equal(t, "revoked", revoked.ClientID, "legacy")
	for _, o := range r.instances {
		check.Eventually(t, "the access token is worthless", func() bool { return !r.active(o, r.legacy, tokens.Access) })
		check.Equal(t, "active", r.active(o, r.legacy, tokens.Refresh), false)
	}
	again := r.signIn(r.instances[1])
	check.Equal(t, "active", r.active(r.instances[0], r.legacy, again.Access), true)
}

// good checks that all instances accept what each of them issues to the admin client.
func (c *cluster) good() {
	c.t.Helper()
	for _, by := range c.instances {
		token := askToken(c.t, by.clients, c.ops)
		for _, o := range c.instances {
			check.Equal(c.t, "active", c.active(o, c.ops, token), true)
			check.Equal(c.t, "status", c.admin(o, token), http.StatusOK)
		}
	}
}
