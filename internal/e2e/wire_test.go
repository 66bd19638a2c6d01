package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	require.NoError(tb, json.Unmarshal([]byte(r.body), &o), r.body)
	return o
}

// send sends a request as it is.
func send(tb testing.TB, client *http.Client, req *http.Request) reply {
	tb.Helper()
	res, err := client.Do(req)
	require.NoError(tb, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(tb, err)
	require.NoError(tb, res.Body.Close())
	return reply{status: res.StatusCode, header: res.Header, body: string(body)}
}

func (s *server) get(path string) reply {
	s.tb.Helper()
	req, err := http.NewRequestWithContext(s.tb.Context(), http.MethodGet, s.Issuer+path, http.NoBody)
	require.NoError(s.tb, err)
	return send(s.tb, newHTTPClient(s.tb), req)
}

// post sends a form with the client's Basic credentials, unless it is empty.
func (s *server) post(path, clientID string, form url.Values) reply {
	s.tb.Helper()
	req, err := http.NewRequestWithContext(s.tb.Context(), http.MethodPost, s.Issuer+path, strings.NewReader(form.Encode()))
	require.NoError(s.tb, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if clientID != "" {
		req.SetBasicAuth(url.QueryEscape(clientID), url.QueryEscape(secrets[clientID]))
	}
	return send(s.tb, newHTTPClient(s.tb), req)
}

func (s *server) introspect(clientID, token string) map[string]any {
	s.tb.Helper()
	r := s.post("/introspect", clientID, url.Values{"token": {token}})
	require.Equal(s.tb, http.StatusOK, r.status, r.body)
	requireUncached(s.tb, r)
	return r.object(s.tb)
}

func requireUncached(tb testing.TB, r reply) {
	tb.Helper()
	require.Equal(tb, "application/json", r.header.Get("Content-Type"))
	require.Equal(tb, "no-store", r.header.Get("Cache-Control"))
}

// requireOAuthError checks what RFC 6749 section 5.2 says of every refusal.
func requireOAuthError(tb testing.TB, r reply, status int, code string) {
	tb.Helper()
	require.Equal(tb, status, r.status, r.body)
	requireUncached(tb, r)
	o := r.object(tb)
	require.Equal(tb, code, o["error"], r.body)
	require.IsType(tb, "", o["error_description"])
	if status == http.StatusUnauthorized {
		require.Contains(tb, r.header.Get("WWW-Authenticate"), "Basic")
	} else {
		require.Empty(tb, r.header.Get("WWW-Authenticate"))
	}
}
