package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// beforeKeycloak is a gateway before a realm.
type beforeKeycloak struct {
	*server
	realm *realm
}

// fewADay is the limit of each client and user before Keycloak. No frame of it ends during a test, save at midnight.
const fewADay = 4

var keycloakLimits = fmt.Sprintf(`rate_limit:
  default:
    client: [ { name: daily, requests: %[1]d, window: 24h } ]
    user: [ { name: daily, requests: %[1]d, window: 24h } ]
  clients:
    reader: { total: [ { name: daily-total, requests: 3, window: 24h } ] }
    patient: { client: [ { name: brief, requests: 2, window: 3s, frames: 30 } ] }
`, fewADay)

// startGateway runs a gateway before the realm, on a store of its own unless the arguments name another.
func startGateway(t *testing.T, r *realm, config string, args ...string) *beforeKeycloak {
	t.Helper()
	return &beforeKeycloak{server: gatewayBefore(t, r.base, "/realms/*/protocol/openid-connect/token", config, args...), realm: r}
}

// TestGatewayBeforeKeycloak: a real Keycloak behind the gateway, used by the libraries that clients use.
func TestGatewayBeforeKeycloak(t *testing.T) {
	t.Parallel()
	clients := []string{"every-grant", "looping", "patient", "rotating", "guessed", "reader", "onlooker", shared} // limits and events are theirs
	g := startGateway(t, newRealm(t, clients...), keycloakLimits)
	t.Run("every grant", g.everyGrant)
	t.Run("a loop is stopped", g.aLoopIsStopped)
	t.Run("Retry-After is right", g.retryAfterIsRight)
	t.Run("rotation is followed", g.rotationIsFollowed)
	t.Run("guesses spend nothing", g.guessesSpendNothing)
	t.Run("permissions are of the token's client", g.permissionsAreOfTheTokensClient)
	t.Run("other paths pass", g.otherPathsPass)
	t.Run("gateways share a limit", g.realm.gatewaysShareALimit)
	check.Equal(t, "exit status", g.stop(), 0)
}

// config is a client of the realm that uses the gateway.
func (g *beforeKeycloak) config(clientID string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: clientID, ClientSecret: keycloakSecret, Scopes: []string{oidc.ScopeOpenID}, RedirectURL: loopbackURI,
		Endpoint: oauth2.Endpoint{
			AuthURL:  g.Issuer + g.realm.path("/protocol/openid-connect/auth"),
			TokenURL: g.Issuer + g.realm.path(""), AuthStyle: oauth2.AuthStyleInHeader,
		},
	}
}

// machine asks for a token of the client itself.
func (g *beforeKeycloak) machine(ctx context.Context, clientID string) (*oauth2.Token, error) {
	c := clientcredentials.Config{
		ClientID: clientID, ClientSecret: keycloakSecret, TokenURL: g.Issuer + g.realm.path(""), AuthStyle: oauth2.AuthStyleInHeader,
	}
	return c.Token(ctx)
}

// ask sends a token request with Basic credentials to the gateway.
func (g *beforeKeycloak) ask(t *testing.T, clientID, secret string, form url.Values) reply {
	t.Helper()
	return g.askAt(t, g.Issuer, clientID, secret, form)
}

// askAt sends it to the gateway, or past it to Keycloak.
func (g *beforeKeycloak) askAt(t *testing.T, base, clientID, secret string, form url.Values) reply {
	t.Helper()
	req := g.request(t, http.MethodPost, base, g.realm.path(""), form.Encode())
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(clientID, url.QueryEscape(secret))
	return send(t, newHTTPClient(t), req)
}

// request makes a request to the gateway, or one to Keycloak as the gateway sends it.
func (g *beforeKeycloak) request(t *testing.T, method, base, path, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	check.OK(t, err)
	if base == g.Issuer {
		req.Header.Set("X-Forwarded-For", "203.0.113.9") // which is not believed
		return req
	}
	req.Header.Set("X-Forwarded-Host", strings.TrimPrefix(g.Issuer, "http://"))
	req.Header.Set("X-Forwarded-Proto", "http")
	return req
}

var forTheClient = url.Values{"grant_type": {"client_credentials"}}

// everyGrant uses each grant with a client library, after discovery through the gateway.
func (g *beforeKeycloak) everyGrant(t *testing.T) {
	const id = "every-grant"
	ctx := oidc.ClientContext(with(t), newHTTPClient(t))
	issuer := g.Issuer + g.realm.path("/")
	provider, err := oidc.NewProvider(ctx, strings.TrimSuffix(issuer, "/"))
	check.OK(t, err) // the issuer is the gateway's address
	c := g.config(id)
	check.Equal(t, "authorization endpoint", provider.Endpoint().AuthURL, c.Endpoint.AuthURL)
	check.Equal(t, "token endpoint", provider.Endpoint().TokenURL, c.Endpoint.TokenURL)
	verifier := provider.VerifierContext(ctx, &oidc.Config{ClientID: id})

	machine, err := g.machine(ctx, id)
	check.OK(t, err)
	_, err = provider.VerifierContext(ctx, &oidc.Config{SkipClientIDCheck: true}).Verify(ctx, machine.AccessToken)
	check.OK(t, err, "access token")

	direct, err := c.PasswordCredentialsToken(ctx, user, password)
	check.OK(t, err)
	subject := verifyID(ctx, t, verifier, direct, "")

	pkce := oauth2.GenerateVerifier()
	back := newKeycloakBrowser(t).signInAtKeycloak(c.AuthCodeURL("the state", oauth2.S256ChallengeOption(pkce), oidc.Nonce("the nonce")), user)
	check.Equal(t, "state", back.Get("state"), "the state")
	token, err := c.Exchange(ctx, back.Get("code"), oauth2.VerifierOption(pkce))
	check.OK(t, err)
	check.Equal(t, "sub of a code", verifyID(ctx, t, verifier, token, "the nonce"), subject)

	refreshed, err := refresh(ctx, c, token.RefreshToken)
	check.OK(t, err)
	check.Equal(t, "sub of a refresh", verifyID(ctx, t, verifier, refreshed, ""), subject)
	check.Equal(t, "the refresh token is another one", refreshed.RefreshToken != "" && refreshed.RefreshToken != token.RefreshToken, true)
	_, err = refresh(ctx, c, token.RefreshToken)
	requireRefused(t, err, http.StatusBadRequest, "invalid_grant")

	g.realm.wantEvents(t, id, map[string]int{"CLIENT_LOGIN": 1, "LOGIN": 2, "CODE_TO_TOKEN": 1, "REFRESH_TOKEN": 1, "REFRESH_TOKEN_ERROR": 1})
}

// verifyID verifies the id_token that came with a token and returns its user.
func verifyID(ctx context.Context, t *testing.T, verifier *oidc.IDTokenVerifier, token *oauth2.Token, nonce string) string {
	t.Helper()
	raw, _ := token.Extra("id_token").(string)
	verified, err := verifier.Verify(ctx, raw)
	check.OK(t, err, "id_token")
	check.OK(t, verified.VerifyAccessToken(token.AccessToken))
	check.Equal(t, "nonce", verified.Nonce, nonce)
	return verified.Subject
}

// aLoopIsStopped: Keycloak sees no more of a client in a loop than its limit.
func (g *beforeKeycloak) aLoopIsStopped(t *testing.T) {
	const id = "looping"
	for i := range 30 {
		got := g.ask(t, id, keycloakSecret, forTheClient)
		if i < fewADay {
			check.Equal(t, "status: "+got.body, got.status, http.StatusOK)
			check.Equal(t, "RateLimit", strings.HasPrefix(got.header.Get("RateLimit"), fmt.Sprintf(`"daily";r=%d;t=`, fewADay-i-1)), true)
			continue
		}
		requireLimited(t, got)
	}
	_, err := g.machine(with(t), id)
	requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
	g.realm.wantEvents(t, id, map[string]int{"CLIENT_LOGIN": fewADay})
	for _, e := range g.realm.events(t, id) {
		check.Equal(t, "the address that Keycloak sees", e.IPAddress, "127.0.0.1")
	}
}

// requireLimited checks everything of a 429, and returns how long it says to wait.
func requireLimited(t *testing.T, got reply) time.Duration {
	t.Helper()
	check.Equal(t, "status: "+got.body, got.status, http.StatusTooManyRequests)
	check.Equal(t, "Content-Type", got.header.Get("Content-Type"), "application/json")
	check.Equal(t, "Cache-Control", got.header.Get("Cache-Control"), "no-store")
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	check.OK(t, json.Unmarshal([]byte(got.body), &said))
	check.Equal(t, "error", said.Error, "temporarily_unavailable")
	check.Equal(t, "error_description is there", said.Description != "", true)
	seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
	check.OK(t, err, "Retry-After")
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		check.Equal(t, name+" is there", got.header.Get(name) != "", true)
	}
	return time.Duration(seconds) * time.Second
}

// retryAfterIsRight: who waits as long as a 429 says gets a token.
func (g *beforeKeycloak) retryAfterIsRight(t *testing.T) {
	const id = "patient"
	issued := 0
	issue := func(got reply) {
		t.Helper()
		check.Equal(t, "status: "+got.body, got.status, http.StatusOK)
		issued++
	}
	for range 2 { // times over the limit
		got := g.ask(t, id, keycloakSecret, forTheClient)
		for ; got.status != http.StatusTooManyRequests; got = g.ask(t, id, keycloakSecret, forTheClient) {
			issue(got)
		}
		retry := requireLimited(t, got)
		check.Equal(t, "Retry-After is within the window", retry >= time.Second && retry <= 4*time.Second, true)
		wait(t, retry)
		issue(g.ask(t, id, keycloakSecret, forTheClient))
	}
	g.realm.wantEvents(t, id, map[string]int{"CLIENT_LOGIN": issued})
}

// rotationIsFollowed: one limit holds over all grants of a user, whom refresh tokens do not name.
func (g *beforeKeycloak) rotationIsFollowed(t *testing.T) {
	const id = "rotating"
	ctx, c := with(t), g.config(id)
	token, err := c.PasswordCredentialsToken(ctx, user, password)
	check.OK(t, err)
	for range fewADay - 2 {
		token, err = refresh(ctx, c, token.RefreshToken)
		check.OK(t, err)
	}
	last, err := c.PasswordCredentialsToken(ctx, user, password)
	check.OK(t, err)
	for _, r := range []string{token.RefreshToken, last.RefreshToken} {
		_, err = refresh(ctx, c, r)
		requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
	}
	_, err = c.PasswordCredentialsToken(ctx, user, password)
	requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
	for _, spelling := range []string{strings.ToUpper(user), strings.ToUpper(user[:1]) + user[1:]} {
		_, err = c.PasswordCredentialsToken(ctx, spelling, password) // which Keycloak takes for the same user
		requireRefused(t, err, http.StatusTooManyRequests, "temporarily_unavailable")
	}
	g.realm.wantEvents(t, id, map[string]int{"LOGIN": 2, "REFRESH_TOKEN": fewADay - 2})

	_, err = c.PasswordCredentialsToken(ctx, secondUser, password)
	check.OK(t, err, "another user")
	got := g.askAt(t, g.realm.base, id, keycloakSecret, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.RefreshToken}})
	check.Equal(t, "status of the denied refresh token, past the gateway: "+got.body, got.status, http.StatusOK) // it is not used up
}

// guessesSpendNothing: who does not have the secret, or the password, takes nothing from those who do.
func (g *beforeKeycloak) guessesSpendNothing(t *testing.T) {
	const id, guesses = "guessed", 5 * fewADay
	forUser := func(password string) url.Values {
		return url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
	}
	for range guesses {
		check.Equal(t, "wrong secret", g.ask(t, id, "wrong", forTheClient).status, http.StatusUnauthorized)
		check.Equal(t, "wrong secret, right password", g.ask(t, id, "wrong", forUser(password)).status, http.StatusUnauthorized)
		check.Equal(t, "wrong password", g.ask(t, id, keycloakSecret, forUser("wrong")).status, http.StatusUnauthorized)
	}
	for range fewADay {
		check.Equal(t, "right secret", g.ask(t, id, keycloakSecret, forTheClient).status, http.StatusOK)
		check.Equal(t, "right password", g.ask(t, id, keycloakSecret, forUser(password)).status, http.StatusOK)
	}
	requireLimited(t, g.ask(t, id, keycloakSecret, forTheClient))
	requireLimited(t, g.ask(t, id, keycloakSecret, forUser(password)))
	g.realm.wantEvents(t, id, map[string]int{
		"CLIENT_LOGIN": fewADay, "LOGIN": fewADay, "CLIENT_LOGIN_ERROR": guesses, "LOGIN_ERROR": 2 * guesses,
	})
}

// permissionsAreOfTheTokensClient: Keycloak issues tokens for another token (UMA 2.0), and looks at no client_id.
func (g *beforeKeycloak) permissionsAreOfTheTokensClient(t *testing.T) {
	const id = "reader"
	token, err := g.config(id).PasswordCredentialsToken(with(t), user, password)
	check.OK(t, err)
	ask := func(more ...string) reply {
		form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:uma-ticket"}, "audience": {id}, "client_id": more}
		req := g.request(t, http.MethodPost, g.Issuer, g.realm.path(""), form.Encode())
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		token.SetAuthHeader(req)
		return send(t, newHTTPClient(t), req)
	}
	for range 2 {
		got := ask()
		check.Equal(t, "status: "+got.body, got.status, http.StatusOK)
		check.Equal(t, "status under the name of another client", ask("onlooker").status, http.StatusBadRequest)
	}
	requireLimited(t, ask())
	g.realm.wantEvents(t, id, map[string]int{"LOGIN": 1, "PERMISSION_TOKEN": 2})
	g.realm.wantEvents(t, "onlooker", map[string]int{})
}

// otherPathsPass: what is no token request is answered as Keycloak answers it.
func (g *beforeKeycloak) otherPathsPass(t *testing.T) {
	for _, path := range []string{"/.well-known/openid-configuration", "/protocol/openid-connect/certs", "/protocol/openid-connect/userinfo", "/none"} {
		get := func(base string) reply {
			req := g.request(t, http.MethodGet, base, g.realm.path(path), "")
			req.Header.Set("Accept-Encoding", "identity")
			return send(t, newHTTPClient(t), req)
		}
		direct, through := get(g.realm.base), get(g.Issuer)
		for _, r := range []reply{direct, through} {
			r.header.Del("Date")
		}
		check.Equal(t, path, through, direct)
	}
	b := newKeycloakBrowser(t)
	b.open(g.config("onlooker").AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))
	check.Equal(t, "status of the login page", b.page.status, http.StatusOK)
	check.Equal(t, "the form is sent to the gateway", strings.HasPrefix(b.page.forms[0].action, g.Issuer+g.realm.path("/login-actions/authenticate?")), true)
}

// shared is the client whose limit two gateways share.
const shared = "shared"

// gatewaysShareALimit: two gateways with one MongoDB before the realm.
func (r *realm) gatewaysShareALimit(t *testing.T) {
	const id, limit, most = shared, 30, 20
	config := fmt.Sprintf(`sync: { interval: 50ms }
rate_limit: { default: { client: [ { name: daily, requests: %d, window: 24h } ] } }
`, limit)
	uri, name := mongotest.Database(t)
	database := []string{"--mongodb-uri", uri, "--mongodb-database", name}
	_, err := command(t.Context(), "", append([]string{"migrate", "up"}, database...)...)
	check.OK(t, err)
	one, other := startGateway(t, r, config, database...), startGateway(t, r, config, database...)
	for range limit {
		check.Equal(t, "status at the first", one.ask(t, id, keycloakSecret, forTheClient).status, http.StatusOK)
	}
	requireLimited(t, one.ask(t, id, keycloakSecret, forTheClient))

	// The other one learns of it with the next exchange, long before it has admitted as many itself.
	issued := 0
	got := other.ask(t, id, keycloakSecret, forTheClient)
	for ; got.status == http.StatusOK && issued < most; got = other.ask(t, id, keycloakSecret, forTheClient) {
		issued++
		wait(t, 200*time.Millisecond)
	}
	t.Logf("the other gateway has admitted %d", issued)
	requireLimited(t, got)
	requireLimited(t, one.ask(t, id, keycloakSecret, forTheClient))
	r.wantEvents(t, id, map[string]int{"CLIENT_LOGIN": limit + issued})
}
