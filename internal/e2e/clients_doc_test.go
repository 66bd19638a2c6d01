package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"oauth-server/internal/check"
)

// The functions below stand in docs/clients.md word for word;
// TestClientsDoc holds the two together.

// machine returns an HTTP client that sends a token with each request. Make it
// once and share it: it keeps the token and gets the next one when it must.
func machine(ctx context.Context, issuer, secret string) *http.Client {
	config := clientcredentials.Config{
		ClientID:     "shop",
		ClientSecret: secret,
		TokenURL:     issuer + "/token",
		AuthStyle:    oauth2.AuthStyleInHeader, // or a failure is sent twice
	}
	return config.Client(ctx)
}

// signIn returns the address to send the browser to, and what to remember for
// its return.
func signIn(config *oauth2.Config) (address, state, verifier string) {
	state, verifier = rand.Text(), oauth2.GenerateVerifier()
	return config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)), state, verifier
}

// signedIn takes the query that the browser came back with.
func signedIn(ctx context.Context, config *oauth2.Config, issuer string, query url.Values, state, verifier string) (*oauth2.Token, error) {
	switch {
	case query.Get("state") != state:
		return nil, errors.New("this is no answer to our request")
	case query.Get("iss") != issuer:
		return nil, errors.New("this answer comes from another server (RFC 9207)")
	case query.Has("error"):
		return nil, fmt.Errorf("%s: %s", query.Get("error"), query.Get("error_description"))
	}
	return config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(verifier))
}

// renewed returns a fresh token and keeps its successor. Let one goroutine of
// one process do this at a time: each refresh token works once.
func renewed(ctx context.Context, config *oauth2.Config, old *oauth2.Token, keep func(*oauth2.Token) error) (*oauth2.Token, error) {
	token, err := config.TokenSource(ctx, old).Token()
	if err != nil || token.RefreshToken == old.RefreshToken {
		return token, err
	}
	return token, keep(token) // before anything else can fail
}

// patiently repeats a token request that came too often, after the time that
// the server names. The code or refresh token in it is not used up by a 429.
func patiently(ctx context.Context, ask func() (*oauth2.Token, error)) (*oauth2.Token, error) {
	for {
		token, err := ask()
		var refused *oauth2.RetrieveError
		if !errors.As(err, &refused) || refused.Response.StatusCode != http.StatusTooManyRequests {
			return token, err
		}
		seconds, bad := strconv.Atoi(refused.Response.Header.Get("Retry-After"))
		if bad != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// checker verifies access tokens by the published keys, which it fetches when
// it meets a new one. Make it once.
func checker(ctx context.Context, issuer, audience string) *oidc.IDTokenVerifier {
	keys := oidc.NewRemoteKeySet(ctx, issuer+"/.well-known/jwks.json")
	return oidc.NewVerifier(issuer, keys, &oidc.Config{
		ClientID:             audience, // what aud must hold: your API, not the client
		SupportedSigningAlgs: []string{"ES256"},
	})
}

func TestDocMachine(t *testing.T) {
	s := start(t, unlimited)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Header.Get("Authorization"))
	}))
	defer api.Close()
	client := machine(with(t), s.Issuer, secrets["shop"])
	var seen []string
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL, http.NoBody)
		check.OK(t, err)
		seen = append(seen, send(t, client, req).body)
	}
	client.CloseIdleConnections()
	check.Equal(t, "token of the second request", seen[1], seen[0])
	ctx := oidc.ClientContext(t.Context(), newHTTPClient(t))
	checked, err := checker(ctx, s.Issuer, s.Issuer).Verify(t.Context(), strings.TrimPrefix(seen[0], "Bearer "))
	check.OK(t, err)
	check.Equal(t, "sub", checked.Subject, "shop")
}

func TestDocPerson(t *testing.T) {
	s := start(t, unlimited)
	config, ctx := s.config("native"), with(t)
	address, state, verifier := signIn(config)
	query := newBrowser(t).signInAndAgree(address)
	_, err := signedIn(ctx, config, "https://evil.example", query, state, verifier)
	check.ErrorSays(t, err, "another server")
	_, err = signedIn(ctx, config, s.Issuer, query, "guessed", verifier)
	check.ErrorSays(t, err, "no answer to our request")
	token, err := patiently(ctx, func() (*oauth2.Token, error) {
		return signedIn(ctx, config, s.Issuer, query, state, verifier)
	})
	check.OK(t, err)

	var kept *oauth2.Token
	keep := func(t *oauth2.Token) error { kept = t; return nil }
	same, err := renewed(ctx, config, token, keep)
	check.OK(t, err)
	if same.AccessToken != token.AccessToken || kept != nil {
		t.Fatalf("a fresh token was renewed, and kept as %+v", kept)
	}
	token.Expiry = time.Now().Add(-time.Minute)
	next, err := renewed(ctx, config, token, keep)
	check.OK(t, err)
	if next.RefreshToken == token.RefreshToken || kept != next {
		t.Fatalf("the successor of the refresh token is not kept: got %+v, kept %+v", next, kept)
	}
}

// TestClientsDoc: what docs/clients.md shows in Go is what was tested here.
func TestClientsDoc(t *testing.T) {
	text, err := os.ReadFile("../../docs/clients.md")
	check.OK(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("the page shows no Go")
	}
	files, err := filepath.Glob("*_test.go")
	check.OK(t, err)
	var code strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		check.OK(t, err)
		code.Write(source)
	}
	for _, block := range blocks {
		for _, function := range strings.Split(strings.TrimSpace(block[1]), "\n\n") {
			if !strings.Contains(code.String(), function) {
				t.Errorf("docs/clients.md shows what no test runs:\n%s", function)
			}
		}
	}
}
