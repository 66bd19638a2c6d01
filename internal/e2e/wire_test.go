package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// reply is an HTTP answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// object is the body as a JSON object.
func (r reply) object(tb testing.TB) map[string]any {
	tb.Helper()
	var o map[string]any
	check.OK(tb, json.Unmarshal([]byte(r.body), &o), "read "+r.body)
	return o
}

// tokens are those of the answer.
func (r reply) tokens(tb testing.TB) (got refreshed) {
	tb.Helper()
	check.OK(tb, json.Unmarshal([]byte(r.body), &got), "read "+r.body)
	return got
}

// requireStatus ends the test if the answer has another status.
func (r reply) requireStatus(tb testing.TB, status int) {
	tb.Helper()
	if r.status != status {
		tb.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
}

// send sends a request as it is.
func send(tb testing.TB, client *http.Client, req *http.Request) reply {
	tb.Helper()
	res, err := client.Do(req)
	check.OK(tb, err)
	body, err := io.ReadAll(res.Body)
	check.OK(tb, err)
	check.OK(tb, res.Body.Close())
	return reply{status: res.StatusCode, header: res.Header, body: string(body)}
}

func get(tb testing.TB, address string) reply {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, address, http.NoBody)
	check.OK(tb, err)
	return send(tb, newHTTPClient(tb), req)
}

func (s *server) get(path string) reply {
	s.tb.Helper()
	return get(s.tb, s.Issuer+path)
}

// post sends a form with the client's Basic credentials, unless it is empty.
func (s *server) post(path, clientID string, form url.Values) reply {
	s.tb.Helper()
	return postForm(s.tb, newHTTPClient(s.tb), s.Issuer+path, clientID, secrets[clientID], form)
}

// postForm sends a form with Basic credentials, unless the client is empty.
func postForm(tb testing.TB, client *http.Client, address, clientID, secret string, form url.Values) reply {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	check.OK(tb, err)
	req.Header.Set("Content-Type", formType)
	if clientID != "" {
		req.SetBasicAuth(url.QueryEscape(clientID), url.QueryEscape(secret))
	}
	return send(tb, client, req)
}

func (s *server) introspect(clientID, token string) map[string]any {
	s.tb.Helper()
	r := s.post("/introspect", clientID, url.Values{"token": {token}})
	r.requireStatus(s.tb, http.StatusOK)
	requireUncached(s.tb, r)
	return r.object(s.tb)
}

func requireUncached(tb testing.TB, r reply) {
	tb.Helper()
	check.Equal(tb, "Content-Type", r.header.Get("Content-Type"), "application/json")
	check.Equal(tb, "Cache-Control", r.header.Get("Cache-Control"), "no-store")
}

// requireOAuthError checks what RFC 6749 section 5.2 says of every refusal.
func requireOAuthError(tb testing.TB, r reply, status int, code string) {
	tb.Helper()
	r.requireStatus(tb, status)
	requireUncached(tb, r)
	o := r.object(tb)
	if _, described := o["error_description"].(string); o["error"] != code || !described {
		tb.Fatalf("the answer is %s, want the error %s with a description", r.body, code)
	}
	challenge := r.header.Get("WWW-Authenticate")
	if status == http.StatusUnauthorized && !strings.Contains(challenge, "Basic") || status != http.StatusUnauthorized && challenge != "" {
		tb.Fatalf("status %d comes with WWW-Authenticate: %s", status, challenge)
	}
}
