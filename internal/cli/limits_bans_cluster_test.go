package cli

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

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
