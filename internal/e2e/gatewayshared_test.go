package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/store/mongo/mongotest"
)

// gatewayBefore runs a gateway before an upstream, on a store of its own unless the arguments name another.
func gatewayBefore(t *testing.T, upstream, tokenPath, config string, args ...string) *server {
	t.Helper()
	dir, address := t.TempDir(), testworld.FreeAddress(t)
	s := &server{tb: t, Issuer: "http://" + address, file: filepath.Join(dir, "config.yaml")}
	s.configure(config)
	if len(args) == 0 {
		args = []string{"--data", filepath.Join(dir, "store.db")}
	}
	s.args = append([]string{
		"gateway", "--config", s.file, "--listen", address, "--admin-listen", "127.0.0.1:0",
		"--upstream", upstream, "--token-path", tokenPath, "--public-url", s.Issuer,
	}, args...)
	t.Cleanup(func() {
		if t.Failed() && s.logs != nil {
			t.Logf("end of the log of the gateway:\n%s", s.logs.tail(30))
		}
		if s.cmd != nil {
			s.kill()
		}
	})
	s.up()
	return s
}

// fakeUpstream is a token endpoint that takes every code and refresh token, and answers with tokens of the user and the
// refresh token that it consists of, with a dot between them. It does not say how long that lasts.
func fakeUpstream(t *testing.T) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, refresh, _ := strings.Cut(r.PostFormValue("code")+r.PostFormValue("refresh_token"), ".")
		part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the test reads it
			"access_token": part(`{"alg":"ES256"}`) + "." + part(fmt.Sprintf(`{"sub":%q}`, user)) + "." + part("signature"),
			"token_type":   "Bearer", "expires_in": 300, "refresh_token": user + "." + refresh,
		})
	}))
	t.Cleanup(up.Close)
	return up.URL
}

// twoOfAUser lets each user have two tokens.
const twoOfAUser = `rate_limit:
  default:
    user: [ { name: daily, requests: 2, window: 24h } ]
    client: [ { name: many, requests: 1000, window: 24h } ]
`

// wantToken sends a token request of the client shop to a gateway.
func wantToken(t *testing.T, g *server, what string, want int, grant, field, value string) {
	t.Helper()
	form := url.Values{"grant_type": {grant}, "client_id": {"shop"}, field: {value}}
	got := g.post("/token", "", form)
	check.Equal(t, what+": "+got.body, got.status, want)
}

func wantCode(t *testing.T, g *server, code string) {
	t.Helper()
	wantToken(t, g, "code", http.StatusOK, "authorization_code", "code", code)
}

func wantRefresh(t *testing.T, g *server, what, token string, want int) {
	t.Helper()
	wantToken(t, g, what, want, "refresh_token", "refresh_token", token)
}

// TestGatewaysShareUsers: a refresh token that was issued through one gateway leads to its user at another one, at its
// first use there. What is stored has nothing of it.
func TestGatewaysShareUsers(t *testing.T) {
	t.Parallel()
	uri, name := mongotest.Database(t)
	upstream := fakeUpstream(t)
	store := []string{"--mongodb-uri", uri, "--mongodb-database", name, "--migrate"}
	one := gatewayBefore(t, upstream, "/token", twoOfAUser, store...)
	other := gatewayBefore(t, upstream, "/token", twoOfAUser, store...)
	alone := gatewayBefore(t, upstream, "/token", twoOfAUser, append(store, "--share-subjects=false")...)

	wantCode(t, one, "ada.r1")
	subjects := mongotest.Connect(t, uri).Database(name).Collection("subjects")
	var stored []bson.Raw
	check.Eventually(t, "the user is stored", func() bool {
		cursor, err := subjects.Find(t.Context(), bson.D{})
		check.OK(t, err)
		check.OK(t, cursor.All(t.Context(), &stored))
		return len(stored) > 0
	})
	check.Equal(t, "stored", len(stored), 1)
	check.Equal(t, "user", stored[0].Lookup("value", "user").StringValue(), "ada")
	check.Equal(t, "the token is stored", strings.Contains(string(stored[0]), "r1"), false)

	for n, g := range []*server{other, alone} { // ada has used up her limit there, whatever it knows of the others
		wantCode(t, g, fmt.Sprintf("ada.a%d", n))
		wantCode(t, g, fmt.Sprintf("ada.b%d", n))
	}
	wantRefresh(t, other, "at another gateway", "ada.r1", http.StatusTooManyRequests)
	wantRefresh(t, other, "of somebody else", "bob.r1", http.StatusOK)
	wantRefresh(t, alone, "at one that does not share", "ada.r1", http.StatusOK)
	for _, g := range []*server{one, other, alone} {
		check.Equal(t, "exit status", g.stop(), 0)
	}
}

// TestGatewayKeepsUsers over a restart, on the embedded store.
func TestGatewayKeepsUsers(t *testing.T) {
	t.Parallel()
	g := gatewayBefore(t, fakeUpstream(t), "/token", twoOfAUser)
	wantCode(t, g, "ada.r1")
	check.Equal(t, "exit status", g.stop(), 0)
	g.up()
	wantCode(t, g, "ada.r2")
	wantCode(t, g, "ada.r3")
	wantRefresh(t, g, "after a restart", "ada.r1", http.StatusTooManyRequests)
	check.Equal(t, "exit status", g.stop(), 0)
}
