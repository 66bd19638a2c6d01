package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

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
