package grants_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer   = "https://auth.example.com"
	callback = "https://shop.example.com/callback"
	password = testworld.Password
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
)

var start = testworld.Noon

// world is a service and its environment.
type world struct {
	tb      testing.TB
	service *grants.Service
	opts    grants.Options
	file    string // of the store
	store   *testworld.Store
	clients testworld.Clients
	clock   *testworld.Clock
	ring    *keys.Ring
}

// secretOf returns the secret of a confidential client of the world.
func secretOf(id string) string { return "secret-of-" + id }

func newWorld(tb testing.TB, edits ...func(*grants.Options)) *world {
	tb.Helper()
	all := clientcfg.Grants()
	confidential := func(id string, may ...clientcfg.Grant) *clientcfg.Client {
		return &clientcfg.Client{
			ID: id, Grants: may, SecretDigest: secret.DigestOf(secretOf(id)), Stamp: secret.NewStamp(),
			RedirectURIs: []string{callback}, Scopes: []string{"read", "write", "admin"},
		}
	}
	public := &clientcfg.Client{
		ID: "app", Public: true, Stamp: secret.NewStamp(), Grants: []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{"http://127.0.0.1/callback", "com.example.app:/callback"}, Scopes: []string{"read", "write"},
	}
	exempt := confidential("exempt", all...)
	exempt.WithoutPKCE = true
	shop := confidential("shop", all...) // these tests introspect every token with it
	shop.ResourceServer = true
	caller := confidential("caller", all...)
	caller.Audience = []string{"https://api.example.com", "other"}
	file := filepath.Join(tb.TempDir(), "test.db")
	w := &world{
		tb: tb, clock: &testworld.Clock{}, file: file, store: testworld.OpenStore(tb, file),
		clients: testworld.Clients{
			"shop": shop, "caller": caller, "other": confidential("other", all...),
			"daemon": confidential("daemon", clientcfg.ClientCredentials),
			"login":  confidential("login", clientcfg.AuthorizationCode),
			"app":    public, "exempt": exempt,
		},
	}
	w.clients.MustBeValid(tb)
	testworld.AddUsers(tb, w.store.Users, start.Add(-time.Hour))
	var err error
	w.ring, err = keys.Open(tb.Context(), w.store, keys.Options{Issuer: issuer, Now: w.clock.Now})
	check.OK(tb, err)
	opts := grants.Options{Issuer: issuer, Clients: w.clients, Store: grants.NewRepository(w.store), Users: w.store.Users, Stored: w.store, Signer: w.ring, Deriver: testworld.Deriver{}, Now: w.clock.Now}
	opts.SignIn.Passwords = testworld.Passwords(secret.PasswordOptions{})
	for _, edit := range edits {
		edit(&opts)
	}
	w.opts = opts
	w.reopen()
	return w
}

// reopen recreates the service with changed options.
func (w *world) reopen(edits ...func(*grants.Options)) {
	w.tb.Helper()
	for _, edit := range edits {
		edit(&w.opts)
	}
	var err error
	w.service, err = grants.New(w.opts)
	check.OK(w.tb, err)
}

// failing is a failing store, and a failing reader of clients.
type failing struct {
	testworld.Failing
	clients clientcfg.ClientReader
}

func (f *failing) Client(ctx context.Context, id string) (clientcfg.Client, error) {
	if f.Operation == "Client" {
		return clientcfg.Client{}, f.Err
	}
	return f.clients.Client(ctx, id)
}

// fail puts a failing store below the service.
func (w *world) fail(edits ...func(*grants.Options)) *failing {
	w.tb.Helper()
	f := &failing{clients: w.store}
	f.Backend = w.store.Store
	w.reopen(append(edits, func(o *grants.Options) {
		o.Store, o.Users, o.Stored = grants.NewRepository(f), accounts.NewUsers(w.store.Follower, f), f
	})...)
	return f
}

// failingWorld is a world with a failing store.
func failingWorld(tb testing.TB, edits ...func(*grants.Options)) (*world, *failing) {
	tb.Helper()
	w := newWorld(tb, edits...)
	return w, w.fail()
}

var errDown = errors.New("store: down")

func s256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// credentials returns the correct credentials of a client.
func (w *world) credentials(id string) grants.Credentials {
	if c, ok := w.clients[id]; ok && c.Public {
		return grants.Credentials{Method: grants.AuthNone, ClientID: id}
	}
	return grants.Credentials{Method: grants.AuthBasic, ClientID: id, Secret: secretOf(id)}
}

// token requests a token with the correct credentials.
func (w *world) token(id string, req grants.TokenRequest) (grants.TokenResponse, error) {
	req.Credentials = w.credentials(id)
	return w.service.Token(w.tb.Context(), req)
}

// query returns a request about a token with the correct credentials.
func (w *world) query(id, token string) grants.TokenQuery {
	return grants.TokenQuery{Credentials: w.credentials(id), Token: token}
}

// wantRefused sends a token request that must fail with that code and those texts.
func (w *world) wantRefused(want oautherr.Code, id string, req grants.TokenRequest, says ...string) {
	w.tb.Helper()
	_, err := w.token(id, req)
	wantCode(w.tb, want, err)
	for _, text := range says {
		check.ErrorSays(w.tb, err, text)
	}
}

// mustToken is like token, but must succeed.
func (w *world) mustToken(id string, req grants.TokenRequest) grants.TokenResponse {
	w.tb.Helper()
	answer, err := w.token(id, req)
	check.OK(w.tb, err)
	return answer
}

// authorizeRequest returns a valid authorization request for the client.
func (w *world) authorizeRequest(id string) grants.AuthorizeRequest {
	return grants.AuthorizeRequest{
		ResponseType: "code", ClientID: id, RedirectURI: w.clients[id].RedirectURIs[0], State: "xyz",
		CodeChallenge: s256(verifier), CodeChallengeMethod: "S256",
	}
}

// changeClient replaces a client with a changed copy, as a new snapshot would.
func (w *world) changeClient(id string, change func(*clientcfg.Client)) {
	c := *w.clients[id]
	change(&c)
	w.clients[id] = &c
}

// replaceClient deletes a client and registers an identical one.
func (w *world) replaceClient(id string) {
	w.changeClient(id, func(c *clientcfg.Client) { c.CreatedAt, c.Stamp = w.clock.Now(), secret.NewStamp() })
}

// revokeClient revokes a client, as registry.RevokeClient does.
func (w *world) revokeClient(id string) {
	w.changeClient(id, func(c *clientcfg.Client) {
		c.Stamp = c.Stamp.Revoked()
	})
}

// revokeUser revokes alice, as registry.RevokeUser does.
func (w *world) revokeUser() {
	w.tb.Helper()
	w.changeUser(func(u *accounts.User) { u.Stamp = u.Stamp.Revoked() })
}

// changeUser changes alice.
func (w *world) changeUser(edit func(u *accounts.User)) {
	w.tb.Helper()
	check.OK(w.tb, w.store.ChangeUser(w.tb.Context(), "alice", func(u *accounts.User) (clientcfg.Event, error) {
		edit(u)
		return clientcfg.Event{}, nil
	}))
}

// session signs alice in.
func (w *world) session() accounts.Session {
	w.tb.Helper()
	alice, err := w.store.User(w.tb.Context(), "alice")
	check.OK(w.tb, err)
	return accounts.Session{
		UserStamp: alice.Stamp,
		Key:       secret.DigestOf(secret.New()).Key(), Username: "alice", CreatedAt: w.clock.Now(), ExpiresAt: w.clock.Now().Add(time.Hour),
	}
}

// approve accepts a newly opened page as the user of the session.
func (w *world) approve(p *grants.Prompt, session accounts.Session) (code string, err error) {
	return w.service.Approve(w.tb.Context(), p, session, consentAt(w.clock.Now(), "the request"))
}

// consentAt returns the answer to a page opened at that time.
func consentAt(opened time.Time, request string) grants.Consent {
	const cookie = "the value of a cookie"
	return grants.Consent{Cookie: cookie, Request: request, Page: grants.NewConsentPage(opened, cookie, request)}
}

// code gets an authorization code from alice for the client.
func (w *world) code(id string, edits ...request) string {
	w.tb.Helper()
	code, err := w.approve(w.prompted(id, edits...), w.session())
	check.OK(w.tb, err)
	return code
}

// redemption returns the valid token request for a client's code.
func (w *world) redemption(id, code string) grants.TokenRequest {
	return grants.TokenRequest{
		GrantType: "authorization_code", Code: code,
		RedirectURI: w.clients[id].RedirectURIs[0], CodeVerifier: verifier,
	}
}

// tokens returns the first tokens of a new family of alice.
func (w *world) tokens(id string) grants.TokenResponse {
	w.tb.Helper()
	return w.mustToken(id, w.redemption(id, w.code(id)))
}

var clientCredentials = grants.TokenRequest{GrantType: "client_credentials"}

func byPassword(name, pw string) grants.TokenRequest {
	return grants.TokenRequest{GrantType: "password", Username: name, Password: pw, Remote: here}
}

func refreshing(token string) grants.TokenRequest {
	return grants.TokenRequest{GrantType: "refresh_token", RefreshToken: token}
}

// active introspects a token.
func (w *world) active(token string) bool {
	w.tb.Helper()
	answer, err := w.service.Introspect(w.tb.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: token})
	check.OK(w.tb, err)
	return answer.Active
}

// wantActive fails the test unless introspection reports the token as active, or as not active if
// want is false.
func (w *world) wantActive(want bool, token string) {
	w.tb.Helper()
	if got := w.active(token); got != want {
		w.tb.Fatalf("active is %v, want %v: %s", got, want, token)
	}
}

// wantCode fails the test unless err is an OAuth error with that code and a description that is
// valid as error_description.
func wantCode(tb testing.TB, want oautherr.Code, err error) {
	tb.Helper()
	failed := check.As[*grants.Error](tb, err)
	if failed.Code != want {
		tb.Fatalf("error %v, want the code %s", err, want)
	}
	for _, r := range failed.Description { // RFC 6749 5.2
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			tb.Fatalf("%q in the description %q", r, failed.Description)
		}
	}
}

// mapOf returns a map with one entry.
func mapOf[V any](key string, v V) ratelimit.Map[V] {
	e := ratelimit.Map[V]{}.Edit()
	e.Set(key, v)
	return e.Map()
}
