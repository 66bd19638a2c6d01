package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokenServer answers the metadata, and /token with answer, which gets the
// form and the client's secret.
func tokenServer(t *testing.T, answer func(form url.Values, secret string) (status int, body string)) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, server.URL, server.URL+"/token")
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		_, secret, _ := r.BasicAuth()
		status, body := answer(r.PostForm, secret)
		w.Header().Set("Content-Type", "application/json")
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "37")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	return server
}

func unsignedJWT(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"ES256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("x"))
}

// runToken runs the command line as a shell would.
func runToken(t *testing.T, environ []string, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &cli{in: strings.NewReader(stdin), out: &out, errOut: &errs, environ: environ}
	status = c.run(t.Context(), append([]string{"token"}, args...))
	return out.String(), errs.String(), status
}

func TestTokenPrintsResponseAndClaims(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	token := unsignedJWT(`{"sub":"shop"}`)
	s := tokenServer(t, func(form url.Values, secret string) (int, string) {
		require.Equal(t, "read write", form.Get("scope"))
		require.Equal(t, "hush", secret)
		return 200, `{"access_token":"` + token + `","token_type":"Bearer","expires_in":3600}`
	})
	args := []string{
		"--issuer", s.URL, "--grant", "client_credentials", "--client-id", "shop", "--client-secret", "hush",
		"--scope", "read", "--scope", "write",
	}
	out, _, status := runToken(t, nil, "", args...)
	require.Equal(t, exitOK, status)
	require.Contains(t, out, "newly issued, kept in "+os.Getenv("XDG_CACHE_HOME"))
	require.Contains(t, out, `"access_token": "`+token+`"`)
	require.Contains(t, out, "NOT verified")
	require.Contains(t, out, `"sub": "shop"`)
	require.NotContains(t, out, "claims_verified", "the server's answer holds nothing that it did not say")

	s.Close()
	out, _, status = runToken(t, nil, "", args...)
	require.Equal(t, exitOK, status)
	require.Contains(t, out, "reused from the cache")
}

func TestTokenAsJSON(t *testing.T) {
	token := unsignedJWT(`{"sub":"shop"}`)
	s := tokenServer(t, func(url.Values, string) (int, string) {
		return 200, `{"access_token":"` + token + `","token_type":"Bearer","expires_in":3600}`
	})
	out, _, status := runToken(t, nil, "", "--issuer", s.URL, "--grant", "client_credentials",
		"--client-id", "c", "--client-secret", "s", "--no-cache", "-o", "json")
	require.Equal(t, exitOK, status)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, token, got["access_token"])
	require.InDelta(t, 3600, got["expires_in"], 60)
	require.Equal(t, "issued", got["origin"])
	require.Equal(t, map[string]any{"sub": "shop"}, got["claims"])
	require.Equal(t, false, got["claims_verified"])
	require.NotContains(t, got, "cache_file")
}

func TestTokenSecrets(t *testing.T) {
	cases := map[string]struct {
		environ []string
		stdin   string
		args    []string
	}{
		"flag":        {nil, "", []string{"--client-secret", " a b"}},
		"stdin":       {nil, " a b\r\n", []string{"--client-secret-stdin"}},
		"environment": {[]string{"OAUTH_CLIENT_SECRET= a b"}, "", nil},
		"flag over environment": {
			environ: []string{"OAUTH_CLIENT_SECRET=other", "OAUTH_CLIENT_ID=other", "OAUTH_ISSUER=https://other.example"},
			args:    []string{"--client-secret", " a b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tokenServer(t, func(_ url.Values, secret string) (int, string) {
				require.Equal(t, "+a+b", secret)
				return 200, `{"access_token":"opaque","token_type":"Bearer","expires_in":60}`
			})
			args := append([]string{"--issuer", s.URL, "--grant", "client_credentials", "--client-id", "c", "--no-cache"}, tc.args...)
			out, errs, status := runToken(t, tc.environ, tc.stdin, args...)
			require.Equal(t, exitOK, status, errs)
			require.Contains(t, out, "is opaque")
			require.NotContains(t, out+errs, " a b")
		})
	}
}

func TestTokenPassword(t *testing.T) {
	s := tokenServer(t, func(form url.Values, _ string) (int, string) {
		require.Equal(t, "ada", form.Get("username"))
		require.Equal(t, "correct horse", form.Get("password"))
		require.Equal(t, "web", form.Get("client_id"))
		return 200, `{"access_token":"opaque","token_type":"Bearer","expires_in":60,"refresh_token":"r"}`
	})
	environ := []string{"OAUTH_USERNAME=ada", "OAUTH_CLIENT_ID=web", "OAUTH_ISSUER=" + s.URL}
	file := filepath.Join(t.TempDir(), "t.json")
	_, errs, status := runToken(t, environ, "correct horse\n", "--grant", "password", "--password-stdin", "--cache", file)
	require.Equal(t, exitOK, status, errs)
	require.FileExists(t, file)
}

func TestTokenRefusals(t *testing.T) {
	const limited, denied = `{"error":"temporarily_unavailable"}`, `{"error":"invalid_client","error_description":"Nobody of that name."}`
	good := []string{"--grant", "client_credentials", "--client-id", "c", "--client-secret", "s", "--no-cache"}
	cases := map[string]struct {
		answer     string
		stdin      string
		args       []string
		wantStatus int
		want       string
	}{
		"limited":         {limited, "", nil, exitFailed, "try again in 37s, or let --wait do so"},
		"wait too long":   {limited, "", []string{"--wait", "--timeout", "10s"}, exitFailed, "no time left to wait 37s"},
		"denied":          {denied, "", nil, exitFailed, "invalid_client: Nobody of that name."},
		"no grant":        {"", "", []string{"--grant", ""}, exitUsage, "grant"},
		"unknown flag":    {"", "", []string{"--grand", "x"}, exitUsage, "--grand"},
		"an argument":     {"", "", []string{"shop"}, exitUsage, `unexpected argument "shop"`},
		"empty stdin":     {"", "\n", []string{"--grant", "password", "--password-stdin"}, exitUsage, "holds no secret"},
		"two of stdin":    {"", "a", []string{"--password-stdin", "--refresh-token-stdin"}, exitUsage, "only one secret"},
		"secret twice":    {"", "a", []string{"--client-secret-stdin"}, exitUsage, "--client-secret and --client-secret-stdin contradict"},
		"cache and none":  {"", "", []string{"--cache", "f"}, exitUsage, "--cache and --no-cache contradict"},
		"http, elsewhere": {"", "", []string{"--issuer", "http://as.example"}, exitUsage, "secrets need https"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := tokenServer(t, func(url.Values, string) (int, string) {
				if tc.answer == limited {
					return http.StatusTooManyRequests, tc.answer
				}
				return http.StatusUnauthorized, tc.answer
			})
			args := append([]string{"--issuer", s.URL}, good...)
			out, errs, status := runToken(t, nil, tc.stdin, append(args, tc.args...)...)
			require.Equal(t, tc.wantStatus, status, errs)
			require.Contains(t, errs, tc.want)
			require.Empty(t, out)
		})
	}
}
