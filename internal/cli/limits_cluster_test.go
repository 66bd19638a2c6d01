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
