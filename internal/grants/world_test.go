package grants_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer   = "https://auth.example.com"
	callback = "https://shop.example.com/callback"
	password = "correct horse battery staple"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636 appendix B
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a clock that tests turn.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// testStore is what the tests need beside [Store].
type testStore interface {
	grants.Store
	CreateUser(ctx context.Context, u grants.User) error
	DeleteUser(ctx context.Context, name string) error
}

// world is a service with everything around it.
type world struct {
	tb      testing.TB
	service *grants.Service
	opts    grants.Options
	file    string // of the store
	store   testStore
	clients map[string]*clientcfg.Client
	clock   *clock
	ring    *keys.Ring
}

// Client implements Clients.
func (w *world) Client(id string) (*clientcfg.Client, bool) {
	c, ok := w.clients[id]
	return c, ok
}

// passwordHash is computed once: it is slow on purpose.
var passwordHashOf = sync.OnceValues(func() (string, error) {
	return secret.NewPasswords(secret.PasswordOptions{}).Hash(context.Background(), password)
})

// secretOf is the secret of a confidential client of the world.
func secretOf(id string) string { return "secret-of-" + id }

func newWorld(tb testing.TB, edits ...func(*grants.Options)) *world {
	tb.Helper()
	all := clientcfg.Grants()
	confidential := func(id string, grants ...clientcfg.Grant) *clientcfg.Client {
		return &clientcfg.Client{
			ID: id, Grants: grants, SecretDigest: secret.DigestOf(secretOf(id)),
			RedirectURIs: []string{callback}, Scopes: []string{"read", "write", "admin"},
		}
	}
	public := &clientcfg.Client{
		ID: "app", Public: true, Grants: []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{"http://127.0.0.1/callback", "com.example.app:/callback"}, Scopes: []string{"read", "write"},
	}
	exempt := confidential("exempt", all...)
	exempt.WithoutPKCE = true
	w := &world{
		tb: tb, clock: &clock{now: start},
		clients: map[string]*clientcfg.Client{
			"shop": confidential("shop", all...), "other": confidential("other", all...),
			"daemon": confidential("daemon", clientcfg.ClientCredentials),
			"login":  confidential("login", clientcfg.AuthorizationCode),
			"app":    public, "exempt": exempt,
		},
	}
	w.file = filepath.Join(tb.TempDir(), "test.db")
	w.store = openStore(tb, w.file)
	for _, c := range w.clients {
		require.NoError(tb, c.Validate())
	}
	hash, err := passwordHashOf()
	require.NoError(tb, err)
	for _, name := range []string{"alice", "bob"} {
		require.NoError(tb, w.store.CreateUser(tb.Context(), grants.User{Name: name, PasswordHash: hash, CreatedAt: start.Add(-time.Hour)}))
	}
	w.ring, err = keys.Open(tb.Context(), &oneKey{}, keys.Options{Issuer: issuer, Now: w.clock.Now})
	require.NoError(tb, err)
	opts := grants.Options{Issuer: issuer, Clients: w, Store: w.store, Signer: w.ring, Now: w.clock.Now}
	for _, edit := range edits {
		edit(&opts)
	}
	w.opts = opts
	w.reopen()
	return w
}

// reopen makes the service anew, with changed options.
func (w *world) reopen(edits ...func(*grants.Options)) {
	w.tb.Helper()
	for _, edit := range edits {
		edit(&w.opts)
	}
	var err error
	w.service, err = grants.New(w.opts)
	require.NoError(w.tb, err)
}

// openStore opens a fresh embedded store.
func openStore(tb testing.TB, path string) *embedded.Store {
	tb.Helper()
	store, err := embedded.Open(path, embedded.Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, store.Close()) })
	return store
}

var errDown = errors.New("store: down")

// oneKey is a keys.Store that keeps what it is given.
type oneKey struct{ records []keys.Record }

func (o *oneKey) Keys(context.Context) ([]keys.Record, error) { return o.records, nil }
func (o *oneKey) DeleteKey(context.Context, string) error     { return nil }

func (o *oneKey) AddKey(_ context.Context, k keys.Record) error {
	o.records = append(o.records, k)
	return nil
}

func s256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// credentials are the right ones of a client.
func (w *world) credentials(id string) grants.Credentials {
	if c, ok := w.clients[id]; ok && c.Public {
		return grants.Credentials{Method: grants.AuthNone, ClientID: id}
	}
	return grants.Credentials{Method: grants.AuthBasic, ClientID: id, Secret: secretOf(id)}
}

// token asks for a token with the right credentials.
func (w *world) token(id string, req grants.TokenRequest) (grants.TokenResponse, error) {
	req.Credentials = w.credentials(id)
	return w.service.Token(w.tb.Context(), req)
}

// mustToken is token that must succeed.
func (w *world) mustToken(id string, req grants.TokenRequest) grants.TokenResponse {
	w.tb.Helper()
	answer, err := w.token(id, req)
	require.NoError(w.tb, err)
	return answer
}

// authorizeRequest is a good one for the client.
func (w *world) authorizeRequest(id string) grants.AuthorizeRequest {
	return grants.AuthorizeRequest{
		ResponseType: "code", ClientID: id, RedirectURI: w.clients[id].RedirectURIs[0], State: "xyz",
		CodeChallenge: s256(verifier), CodeChallengeMethod: "S256",
	}
}

// session signs alice in.
func (w *world) session() grants.Session {
	return grants.Session{Username: "alice", CreatedAt: w.clock.Now(), ExpiresAt: w.clock.Now().Add(time.Hour)}
}

// code gets an authorization code of alice for the client.
func (w *world) code(id string, edits ...func(*grants.AuthorizeRequest)) string {
	w.tb.Helper()
	req := w.authorizeRequest(id)
	for _, edit := range edits {
		edit(&req)
	}
	prompt, err := w.service.Authorize(w.tb.Context(), req)
	require.NoError(w.tb, err)
	code, err := w.service.Approve(w.tb.Context(), prompt, w.session())
	require.NoError(w.tb, err)
	return code
}

// redemption is the good token request for a code of the client.
func (w *world) redemption(id, code string) grants.TokenRequest {
	return grants.TokenRequest{
		GrantType: "authorization_code", Code: code,
		RedirectURI: w.clients[id].RedirectURIs[0], CodeVerifier: verifier,
	}
}

// tokens are the first of a new family of alice.
func (w *world) tokens(id string) grants.TokenResponse {
	w.tb.Helper()
	return w.mustToken(id, w.redemption(id, w.code(id)))
}

func refreshing(token string) grants.TokenRequest {
	return grants.TokenRequest{GrantType: "refresh_token", RefreshToken: token}
}

// active asks the server what a token is worth.
func (w *world) active(token string) bool {
	w.tb.Helper()
	answer, err := w.service.Introspect(w.tb.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: token})
	require.NoError(w.tb, err)
	return answer.Active
}

// requireCode checks the OAuth error code of a failure.
func requireCode(tb testing.TB, want grants.ErrorCode, err error) {
	tb.Helper()
	var oauthErr *grants.Error
	require.ErrorAs(tb, err, &oauthErr)
	require.Equal(tb, want, oauthErr.Code, "%v", err)
	for _, r := range oauthErr.Description { // RFC 6749 5.2
		require.True(tb, r >= 0x20 && r <= 0x7e && r != '"' && r != '\\', "%q in %q", r, oauthErr.Description)
	}
}
