package httpapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/store"
)

// fake is a domain with one client and two users, to test the calls and answers of the HTTP layer.
// Fields named fail… make an operation fail.
type fake struct {
	client                                    clientcfg.Client
	failToken, failSession, failApprove       error
	failAuthorize, failSignIn, failInspection error
	panicking                                 bool

	mu       sync.Mutex
	sessions map[string]accounts.Session
	token    grants.TokenRequest // the last one seen
	query    grants.TokenQuery
	signIn   accounts.SignIn
	approved []string // users with issued codes

	next        grants.Next // the result of Proceed if a user is signed in
	failProceed error
	proceeded   grants.Interaction           // of the last request
	allowed     map[string]*grants.Agreement // by user, with the client
}

const (
	secretOf  = "s3cret"
	appTarget = "https://app.example/cb?tenant=a%20b"
)

func newFake() *fake {
	return &fake{
		sessions: map[string]accounts.Session{},
		client: clientcfg.Client{
			ID: "shop", Name: "The Shop",
			RedirectURIs: []string{appTarget, "com.example.app:/cb", "http://[::1]:7777/cb"},
		},
	}
}

func (f *fake) authenticate(c grants.Credentials) error {
	if c.ClientID != f.client.ID || c.Secret != secretOf {
		return &grants.Error{Code: oautherr.InvalidClient, Description: "client authentication failed"}
	}
	return nil
}

func (f *fake) Token(_ context.Context, r grants.TokenRequest) (grants.TokenResponse, error) {
	if f.panicking {
		panic("boom")
	}
	f.mu.Lock()
	f.token = r
	f.mu.Unlock()
	if f.failToken != nil {
		return grants.TokenResponse{}, f.failToken
	}
	if err := f.authenticate(r.Credentials); err != nil {
		return grants.TokenResponse{}, err
	}
	if r.GrantType != string(clientcfg.ClientCredentials) {
		return grants.TokenResponse{}, &grants.Error{Code: oautherr.UnsupportedGrantType, Description: "not that one"}
	}
	return grants.TokenResponse{AccessToken: "a.b.c", ExpiresIn: time.Hour, RefreshToken: "r", Scopes: []string{"read", "write"}}, nil
}

func (f *fake) Authorize(_ context.Context, r grants.AuthorizeRequest) (*grants.Prompt, error) {
	if f.failAuthorize != nil {
		return nil, f.failAuthorize
	}
	if r.ClientID != f.client.ID || !slices.Contains(f.client.RedirectURIs, r.RedirectURI) {
		return nil, &grants.Error{Code: oautherr.InvalidRequest, Description: "unknown client or redirect_uri"}
	}
	if r.ResponseType != "code" {
		return nil, &grants.RedirectError{RedirectURI: r.RedirectURI, State: r.State, Err: &grants.Error{
			Code: oautherr.UnsupportedResponseType, Description: `only "code"`,
		}}
	}
	return &grants.Prompt{
		Client: &f.client, RedirectURI: r.RedirectURI, Scopes: strings.Fields(r.Scope), State: r.State,
		Interaction: grants.Interaction{
			Silent: r.Prompt == "none", SignIn: r.Prompt == "login", Consent: r.Prompt == "consent", Hint: r.LoginHint,
		},
	}, nil
}

func (f *fake) Proceed(_ context.Context, p *grants.Prompt, s *accounts.Session) (grants.Next, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proceeded = p.Interaction
	if f.failProceed != nil {
		return grants.Next{}, f.failProceed
	}
	if s == nil {
		return grants.Next{SignIn: true}, nil
	}
	next := f.next
	if p.Consent {
		next.Code = ""
	}
	return next, nil
}

func (f *fake) Allowed(_ context.Context, username string) (list []grants.Allowed, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.allowed[username] != nil {
		list = append(list, grants.Allowed{Agreement: *f.allowed[username], Client: &f.client})
	}
	return list, f.failProceed
}

func (f *fake) Withdraw(_ context.Context, username, clientID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.allowed[username] == nil || clientID != f.client.ID {
		return store.ErrNotFound
	}
	delete(f.allowed, username)
	return f.failProceed
}

func (f *fake) FirstParty(clientID string) bool {
	return clientID == f.client.ID && f.client.FirstParty
}

func (f *fake) Approve(_ context.Context, _ *grants.Prompt, s accounts.Session, c grants.Consent) (string, error) {
	if !c.Genuine() {
		return "", errors.New("approved by a page that is not genuine")
	}
	if f.failApprove != nil {
		return "", f.failApprove
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.approved = append(f.approved, s.Username)
	return "the-code", nil
}

func (f *fake) SignIn(_ context.Context, in accounts.SignIn) (string, accounts.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signIn = in
	if f.failSignIn != nil {
		return "", accounts.Session{}, f.failSignIn
	}
	if in.Password != "pass-"+in.Username {
		return "", accounts.Session{}, accounts.ErrSignIn
	}
	s := accounts.Session{Username: in.Username, ExpiresAt: time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)}
	f.sessions["cookie-"+in.Username] = s
	return "cookie-" + in.Username, s, nil
}

func (f *fake) Session(_ context.Context, cookie string) (accounts.Session, error) {
	if f.failSession != nil {
		return accounts.Session{}, f.failSession
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sessions[cookie]
	if !ok {
		return accounts.Session{}, accounts.ErrNoSession
	}
	return s, nil
}

func (f *fake) SignOut(_ context.Context, cookie string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sessions, cookie)
	return nil
}

func (f *fake) Introspect(_ context.Context, q grants.TokenQuery) (grants.Introspection, error) {
	f.query = q
	if f.failInspection != nil {
		return grants.Introspection{}, f.failInspection
	}
	if err := f.authenticate(q.Credentials); err != nil {
		return grants.Introspection{}, err
	}
	return grants.Introspection{Active: q.Token == "good", TokenType: "Bearer", Username: "alice", Claims: keys.Claims{
		ClientID: "shop", Scopes: []string{"read"}, Subject: "alice", Issuer: "http://id.example", Audience: []string{"api"}, ID: "j1",
		IssuedAt: time.Unix(100, 0), ExpiresAt: time.Unix(200, 0),
	}}, nil
}

func (f *fake) Revoke(_ context.Context, q grants.TokenQuery) error {
	f.query = q
	if f.failInspection != nil {
		return f.failInspection
	}
	return f.authenticate(q.Credentials)
}

func (f *fake) BeginRequest(ctx context.Context, _ *overload.Request) (context.Context, error) {
	return ctx, nil
}

func (f *fake) EndRequest() {}

func (f *fake) JWKS() []byte { return []byte(`{"keys":[]}`) }

// signedIn returns the cookie header of a signed-in user.
func (f *fake) signedIn(username string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions["cookie-"+username] = accounts.Session{Username: username}
	return "oauth_session=cookie-" + username
}

func newServer(tb testing.TB, f *fake, edit func(*httpapi.Options)) *httpapi.Server {
	tb.Helper()
	o := httpapi.Options{
		Issuer: "http://id.example", Service: f, Keys: f, Addresses: &httpapi.Addresses{TrustedHeader: httpapi.XForwardedFor, TrustedHops: 1},
	}
	if edit != nil {
		edit(&o)
	}
	o.Addresses.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s, err := httpapi.New(o)
	check.OK(tb, err)
	return s
}

// request is one request in a table. A zero field has the usual value.
type request struct {
	method, path, body string
	header             http.Header
	chunked            bool // sends no Content-Length
}

const formType = "application/x-www-form-urlencoded"

func (r request) send(tb testing.TB, h http.Handler) *reply {
	tb.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	var body io.Reader = strings.NewReader(r.body)
	if r.chunked {
		body = io.NopCloser(body)
	}
	req := httptest.NewRequest(r.method, r.path, body)
	req.Host = "id.example"
	if r.method == http.MethodPost {
		req.Header.Set("Content-Type", formType)
	}
	maps.Copy(req.Header, r.header)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	res := rec.Result() // the headers when the status was sent
	check.OK(tb, res.Body.Close())
	return &reply{res.StatusCode, res.Header, rec.Body.String()}
}

// reply is an answer.
type reply struct {
	StatusCode int
	Header     http.Header
	Body       string
}

func form(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

// authorization returns a valid authorization request.
func authorization() url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {"shop"}, "redirect_uri": {appTarget},
		"scope": {"orders:read"}, "state": {"st&ate"},
	}
}

var errDisk = errors.New("the disk is on fire")

// holds fails the test unless the text holds the part.
func holds(tb testing.TB, text, part string) {
	tb.Helper()
	if !strings.Contains(text, part) {
		tb.Fatalf("no %q in %s", part, text)
	}
}

// lacks fails the test if the text holds the part.
func lacks(tb testing.TB, text, part string) {
	tb.Helper()
	if strings.Contains(text, part) {
		tb.Fatalf("%q in %s", part, text)
	}
}

// wantStatus fails the test unless the answer has that status.
func wantStatus(tb testing.TB, res *reply, want int) {
	tb.Helper()
	if res.StatusCode != want {
		tb.Fatalf("status %d, want %d: %s", res.StatusCode, want, res.Body)
	}
}

// wantHeader fails the test unless the header has that value, empty if it must be absent.
func wantHeader(tb testing.TB, h http.Header, name, want string) {
	tb.Helper()
	if got := h.Get(name); got != want {
		tb.Fatalf("%s: %q, want %q", name, got, want)
	}
}

// sameJSON fails the test unless both texts are the same JSON.
func sameJSON(tb testing.TB, got, want string) {
	tb.Helper()
	var g, w any
	check.OK(tb, json.Unmarshal([]byte(got), &g))
	check.OK(tb, json.Unmarshal([]byte(want), &w))
	check.Equal(tb, "JSON", g, w)
}
