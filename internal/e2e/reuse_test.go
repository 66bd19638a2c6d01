package e2e

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// reusing is a configuration in which a client gets so many tokens an hour, and its last one above that.
func reusing(requests int) string {
	return limited(requests, "1h", "    over_limit: reuse\n")
}

// A client of golang.org/x/oauth2 that gets a token for each of its requests notices no limit, however it
// sends its credentials.
func TestReuseInALoop(t *testing.T) {
	const limit = 4
	s := start(t, reusing(limit))
	for name, style := range map[string]oauth2.AuthStyle{
		"basic": oauth2.AuthStyleInHeader, "post": oauth2.AuthStyleInParams, "found out by itself": oauth2.AuthStyleAutoDetect,
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx := s.credentials("shop"), with(t)
			c.AuthStyle = style
			seen := map[string]bool{}
			var last *oauth2.Token
			for range 50 * limit {
				token, err := c.Token(ctx)
				check.OK(t, err)
				seen[token.AccessToken], last = true, token
			}
			if len(seen) > limit || !last.Valid() {
				t.Fatalf("%d tokens in an hour, want at most %d, and the last one valid until %v", len(seen), limit, last.Expiry)
			}
			check.Equal(t, "sub", verify(t, s, last.AccessToken).Subject, "shop")
			check.Equal(t, "scope", last.Extra("scope"), "read")
		})
	}
}

// The answer over the limit is that of any token request, with the fields that say that nothing is left.
func TestReuseOnTheWire(t *testing.T) {
	s := start(t, reusing(1))
	ask := func() reply { return s.post("/token", "shop", url.Values{"grant_type": {"client_credentials"}}) }
	first, again := ask(), ask()
	first.requireStatus(t, http.StatusOK)
	again.requireStatus(t, http.StatusOK)
	check.Equal(t, "access_token", again.object(t)["access_token"], first.object(t)["access_token"])
	for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "Retry-After": ""} {
		check.Equal(t, name, again.header.Get(name), want)
	}
	left, _ := rateLimit(t, again.header)
	check.Equal(t, "requests left", left, 0)

	token, _ := again.object(t)["access_token"].(string)
	s.post("/revoke", "shop", url.Values{"token": {token}}).requireStatus(t, http.StatusOK)
	requireOAuthError(t, ask(), http.StatusTooManyRequests, "temporarily_unavailable")
}

// Users are denied, whatever over_limit says.
func TestReuseIsNotForUsers(t *testing.T) {
	s := start(t, reusing(2))
	ctx, c := with(t), s.config("legacy")
	_ = exhaust(t, func() error { _, err := c.PasswordCredentialsToken(ctx, user, password); return err })
}

const reusedLimit = 20

// reusingStrictly is a limit that several servers do not exceed together. It is over the limit that they reuse.
const reusingStrictly = `
rate_limit:
  default:
    client: [ { name: few, requests: 20, window: 1h, strict: true, lease_wait: 5s } ]
    over_limit: reuse
`

// reusingCluster is two servers at which the clients have used up their limits. Each hands out its own last token.
func reusingCluster(t *testing.T, clients ...string) *cluster {
	t.Helper()
	c := newCluster(t, reusingStrictly, clients...)
	c.grow(2)
	for _, id := range clients {
		seen := map[string]bool{}
		for i := range 4 * reusedLimit {
			status, token := c.token(c.members[i%2], id)
			check.Equal(t, "status", status, http.StatusOK)
			seen[token] = true
		}
		if n := len(seen); n < len(c.members) || n > reusedLimit {
			t.Errorf("%d tokens, the limit is %d", n, reusedLimit)
		}
	}
	return c
}

// token asks a server for a token, and returns the status and the token.
func (c *cluster) token(m *member, clientID string) (status int, token string) {
	c.t.Helper()
	r := c.send(m, "/token", clientID, forClient)
	return r.status, r.tokens(c.t).Access
}

// TestReuseAtTwoInstances: a client in a loop at many times its limit, through both, is never denied, and as many
// tokens are issued as are counted: no more than the limit.
func TestReuseAtTwoInstances(t *testing.T) {
	t.Parallel()
	c := reusingCluster(t, "loop")
	last := map[string]bool{}
	for i := range 20 * reusedLimit {
		status, token := c.token(c.members[i%2], "loop")
		check.Equal(t, "status", status, http.StatusOK)
		last[token] = true
	}
	check.Equal(t, "tokens, one of each instance", len(last), 2)
	c.stop(c.members...)
	if n := c.stored()["loop"]; n > reusedLimit {
		t.Errorf("%d are counted, the limit is %d", n, reusedLimit)
	}
}

// TestReuseEndsAtTheOtherInstance: a token that is revoked at one instance, and one whose client is given a secret
// there, is not handed out at the other one within the time that docs/rate-limits.md says.
func TestReuseEndsAtTheOtherInstance(t *testing.T) {
	t.Parallel()
	const within = 2 * time.Second
	c := reusingCluster(t, "revoked", "rotated")
	w := c.watch()
	here, there := c.members[0], c.members[1]
	ends := map[string]func(token string){
		"revoked": func(token string) {
			check.Equal(t, "status", c.send(here, "/revoke", "revoked", url.Values{"token": {token}}).status, http.StatusOK)
		},
		"rotated": func(string) {
			_, err := command(t.Context(), "", "client", "rotate-secret", "rotated", "--overlap", "1h", "--mongodb-uri", c.uri, "--mongodb-database", c.database)
			check.OK(t, err)
		},
	}
	for id, end := range ends {
		status, token := c.token(there, id)
		check.Equal(t, "status", status, http.StatusOK)
		end(token)
		ended := time.Now()
		check.Eventually(t, id+": the token is not handed out", func() bool {
			status, again := c.token(there, id)
			return status == http.StatusTooManyRequests && again == ""
		})
		took, slow := time.Since(ended), w.slow(ended, time.Now())
		t.Logf("%s: not handed out after %v", id, took)
		if took > within+slow {
			t.Errorf("%s: handed out for %v", id, took)
		}
	}
	c.stop(c.members...)
}
