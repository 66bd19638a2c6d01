package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

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
	form := url.Values{"grant_type": {"client_credentials"}}
	r := c.send(m, "/token", clientID, form)
	var body struct {
		AccessToken string `json:"access_token"`
	}
	check.OK(c.t, json.Unmarshal([]byte(r.body), &body))
	return r.status, body.AccessToken
}

// send sends a form to a server with the credentials of a client.
func (c *cluster) send(m *member, path, clientID string, form url.Values) reply {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, m.Issuer+path, strings.NewReader(form.Encode()))
	check.OK(c.t, err)
	req.SetBasicAuth(clientID, c.secrets[clientID])
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(c.t, c.http, req)
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
