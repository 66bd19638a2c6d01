package tokenclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"golang.org/x/oauth2"

	"oauth-server/internal/check"
)

// lifetime is how long the fake server's tokens are good.
const lifetime = 10 * time.Minute

// fakeServer is an authorization server of few words: it rotates refresh
// tokens, revokes on reuse, checks PKCE and records what it was asked.
type fakeServer struct {
	*httptest.Server
	tb  testing.TB
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	now      time.Time
	asked    []url.Values // every form that reached /token
	basic    []string     // the client of each that came with Basic
	refuse   []refusal    // the next answers of /token, before any other
	codes    map[string]url.Values
	refresh  string // the only good refresh token
	issued   int
	revoked  bool
	metadata map[string]any                // replaces fields of the metadata
	redirect func(callback url.Values)     // changes what is sent back
	claims   func(claims map[string]any)   // changes what a token says
	answer   func(response map[string]any) // changes the token response
}

type refusal struct {
	status int
	header http.Header
	body   string
}

func newFakeServer(tb testing.TB) *fakeServer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(tb, err)
	f := &fakeServer{tb: tb, key: key, now: time.Now(), codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", f.serveMetadata)
	mux.HandleFunc("GET /jwks", f.serveKeys)
	mux.HandleFunc("GET /authorize", f.serveAuthorize)
	mux.HandleFunc("POST /token", f.serveToken)
	f.Server = httptest.NewServer(mux)
	tb.Cleanup(f.Close)
	return f
}

// clock is the time as the fake server and the client under test see it.
func (f *fakeServer) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeServer) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// grants returns the grant types that /token was asked for, in order.
func (f *fakeServer) grants() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []string{}
	for _, form := range f.asked {
		all = append(all, form.Get("grant_type"))
	}
	return all
}

func (f *fakeServer) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := map[string]any{
		"issuer":                                f.URL,
		"authorization_endpoint":                f.URL + "/authorize",
		"token_endpoint":                        f.URL + "/token",
		"jwks_uri":                              f.URL + "/jwks",
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
		"code_challenge_methods_supported":      []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	maps.Copy(m, f.metadata)
	writeJSON(w, http.StatusOK, m)
}

func (f *fakeServer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: f.key.Public(), KeyID: "k1", Algorithm: "ES256", Use: "sig"},
	}})
}

// serveAuthorize agrees at once, as a person would after some clicks.
func (f *fakeServer) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	code := "code-" + strconv.Itoa(len(f.codes)+1)
	f.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {f.URL}}
	if f.redirect != nil {
		f.redirect(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther)
}

func (f *fakeServer) serveToken(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	form := r.PostForm
	f.asked = append(f.asked, form)
	if id, _, ok := r.BasicAuth(); ok {
		f.basic = append(f.basic, id)
	}
	if len(f.refuse) > 0 {
		next := f.refuse[0]
		f.refuse = f.refuse[1:]
		maps.Copy(w.Header(), next.header)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(next.status)
		_, _ = w.Write([]byte(next.body))
		return
	}
	if !f.take(form) {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "not good"})
		return
	}
	writeJSON(w, http.StatusOK, f.issue(form))
}

// take checks what the form presents and spends it.
func (f *fakeServer) take(form url.Values) bool {
	switch form.Get("grant_type") {
	case "authorization_code":
		q, ok := f.codes[form.Get("code")]
		delete(f.codes, form.Get("code"))
		return ok && q.Get("redirect_uri") == form.Get("redirect_uri") &&
			q.Get("code_challenge_method") == "S256" &&
			q.Get("code_challenge") == oauth2.S256ChallengeFromVerifier(form.Get("code_verifier"))
	case "refresh_token":
		good := form.Get("refresh_token") == f.refresh && !f.revoked
		f.revoked = f.revoked || !good
		return good
	case "password":
		f.revoked = false
		return form.Get("password") == "right"
	default:
		return true
	}
}

func (f *fakeServer) issue(form url.Values) map[string]any {
	f.issued++
	claims := map[string]any{
		"iss": f.URL, "sub": "somebody", "aud": "api", "client_id": "shop",
		"iat": f.now.Unix(), "exp": f.now.Add(lifetime).Unix(), "jti": strconv.Itoa(f.issued),
	}
	if f.claims != nil {
		f.claims(claims)
	}
	response := map[string]any{
		"access_token": f.sign(claims), "token_type": "Bearer",
		"expires_in": lifetime.Seconds(), "scope": form.Get("scope"),
	}
	if form.Get("grant_type") != "client_credentials" {
		f.refresh = "refresh-" + strconv.Itoa(f.issued)
		response["refresh_token"] = f.refresh
		f.revoked = false
	}
	if f.answer != nil {
		f.answer(response)
	}
	return response
}

func (f *fakeServer) sign(claims map[string]any) string {
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: f.key, KeyID: "k1"}}
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("at+jwt"))
	check.OK(f.tb, err)
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	check.OK(f.tb, err)
	return text
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}
