package cli

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// operated is a running server with the address that operators are served on.
type operated struct {
	*process
	clients, operators string // base addresses
}

func launchOperated(t *testing.T, args ...string) operated {
	t.Helper()
	p := launch(t, append(args, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")...)
	for line := range p.lines {
		_, rest, ok := strings.Cut(line, "msg=listening address=")
		if !ok {
			continue
		}
		_, admin, _ := strings.Cut(rest, "admin_address=")
		return operated{p, "http://" + strings.Fields(rest)[0], "http://" + strings.Fields(admin)[0]}
	}
	t.Fatalf("it ended without listening:\n%s", p.log.String())
	return operated{}
}

// operatedCluster is servers on one database, with a client to limit and a token for operators.
type operatedCluster struct {
	instances []operated
	shop      credentials
	token     string
}

func newOperatedCluster(t *testing.T, size int) *operatedCluster {
	t.Helper()
	db := database(t)
	c := &operatedCluster{}
	for range size {
		c.instances = append(c.instances, launchOperated(t, append([]string{"serve", "--issuer", "http://127.0.0.1:9096", "--migrate"}, db...)...))
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
	within(change(instances[2], "dry-run", "shop", "off"), "dry-run is off", http.StatusTooManyRequests)
	within(change(instances[0], "trust", "shop", "on"), "the client is trusted", http.StatusOK)
	within(change(instances[1], "trust", "shop", "off"), "the client is not trusted", http.StatusTooManyRequests)
	within(change(instances[2], "dry-run", "on"), "a mode of its own goes first", http.StatusTooManyRequests)
	within(change(instances[0], "unset", "shop", "--field", "mode"), "the global mode holds", http.StatusOK)
	within(change(instances[1], "dry-run", "off"), "the global mode changed", http.StatusTooManyRequests)
	within(change(instances[2], "set", "shop", "--client", "1000/1h"), "a higher limit holds", http.StatusOK)

	change(instances[2], "set", "--tier", "gold", "--client", "2/1h")
	change(instances[2], "set", "shop", "--tier", "gold")
	within(change(instances[2], "unset", "shop", "--field", "client"), "the limit of the tier holds", http.StatusTooManyRequests)
	within(change(instances[0], "set", "--tier", "gold", "--client", "1000/1h"), "a higher one holds", http.StatusOK)

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
	check.Equal(t, "changes of limits", len(changes), 13)
}

// A client's counts are forgotten on every instance, and in the database.
func TestResetReachesEveryInstance(t *testing.T) {
	c := newOperatedCluster(t, 2)
	a, b := c.instances[0], c.instances[1]
	c.limits(t, a, "set", "shop", "--client", "3/1h", "--yes")
	for _, o := range c.instances {
		check.Eventually(t, "the limit is used up everywhere", func() bool { return c.status(t, o) == http.StatusTooManyRequests })
	}
	c.limits(t, a, "reset", "shop", "--reason", "our mistake")
	check.Eventually(t, "a request passes again", func() bool { return c.status(t, a) == http.StatusOK || c.status(t, b) == http.StatusOK })
	for _, o := range c.instances {
		check.Eventually(t, "the limit still holds", func() bool { return c.status(t, o) == http.StatusTooManyRequests })
	}
}

// TestOperatorsOfSeveralInstances: the commands reach each instance by its admin address alone, although all of them name an
// issuer that is a proxy elsewhere.
func TestOperatorsOfSeveralInstances(t *testing.T) {
	db := database(t)
	serve := append([]string{"serve", "--issuer", "https://auth.example", "--trusted-proxies", "192.0.2.10", "--migrate"}, db...)
	instances := []operated{launchOperated(t, serve...), launchOperated(t, serve...)}
	var ops credentials
	runJSON(t, &ops, "", append([]string{"client", "create", "ops", "--admin"}, db...)...)
	for _, o := range instances {
		check.Eventually(t, "the client is known", func() bool {
			status, _ := postForm(t, o.operators+"/token", ops, url.Values{"grant_type": {"client_credentials"}})
			return status == http.StatusOK
		})
		operatorsWork(t, o, ops)
	}
}
