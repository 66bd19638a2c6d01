package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
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
	c := &command.Env{In: strings.NewReader(stdin), Out: &out, ErrOut: &errs, Environ: environ}
	status = execute(t.Context(), c, append([]string{"token"}, args...))
	return out.String(), errs.String(), status
}

// tokenSucceeds returns what the command line prints.
func tokenSucceeds(t *testing.T, environ []string, stdin string, args ...string) string {
	t.Helper()
	out, errs, status := runToken(t, environ, stdin, args...)
	if status != command.ExitOK {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	return out
}

func TestTokenPrintsResponseAndClaims(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	token := unsignedJWT(`{"sub":"shop"}`)
	s := tokenServer(t, func(form url.Values, secret string) (int, string) {
		if form.Get("scope") != "read write" || secret != "hush" {
			t.Errorf("asked with the secret %q and %v", secret, form)
		}
		return 200, `{"access_token":"` + token + `","token_type":"Bearer","expires_in":3600}`
	})
	args := []string{
		"--issuer", s.URL, "--grant", "client_credentials", "--client-id", "shop", "--client-secret", "hush",
		"--scope", "read", "--scope", "write",
	}
	out := tokenSucceeds(t, nil, "", args...)
	has(t, out, "newly issued, cached in "+os.Getenv("XDG_CACHE_HOME"), `"access_token": "`+token+`"`, "NOT verified", `"sub": "shop"`)
	if strings.Contains(out, "claims_verified") {
		t.Errorf("what the client adds stands in the server's answer:\n%s", out)
	}

	s.Close()
	has(t, tokenSucceeds(t, nil, "", args...), "reused from the cache")
}

func TestTokenAsJSON(t *testing.T) {
	token := unsignedJWT(`{"sub":"shop"}`)
	s := tokenServer(t, func(url.Values, string) (int, string) {
		return 200, `{"access_token":"` + token + `","token_type":"Bearer","expires_in":3600}`
	})
	out := tokenSucceeds(t, nil, "", "--issuer", s.URL, "--grant", "client_credentials",
		"--client-id", "c", "--client-secret", "s", "--no-cache", "-o", "json")
	var got map[string]any
	check.OK(t, json.Unmarshal([]byte(out), &got))
	if left, _ := got["expires_in"].(float64); math.Abs(left-3600) > 60 {
		t.Errorf("expires_in is %v", got["expires_in"])
	}
	if _, there := got["cache_file"]; there {
		t.Error("cache_file is there without a cache")
	}
	for name, want := range map[string]any{
		"access_token": token, "origin": "issued", "claims": map[string]any{"sub": "shop"}, "claims_verified": false,
	} {
		check.Equal(t, name, got[name], want)
	}
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
				if secret != "+a+b" {
					t.Errorf("the secret is %q", secret)
				}
				return 200, `{"access_token":"opaque","token_type":"Bearer","expires_in":60}`
			})
			args := append([]string{"--issuer", s.URL, "--grant", "client_credentials", "--client-id", "c", "--no-cache"}, tc.args...)
			out, errs, status := runToken(t, tc.environ, tc.stdin, args...)
			if status != command.ExitOK || !strings.Contains(out, "is opaque") || strings.Contains(out+errs, " a b") {
				t.Errorf("exit status %d, want a token without the secret: %s%s", status, out, errs)
			}
		})
	}
}

// TestTokenKeepsTheSecretOfAnotherClient: what is exported for an operator is not sent as the secret of
// the client that a flag names.
func TestTokenKeepsTheSecretOfAnotherClient(t *testing.T) {
	environ := []string{"OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=hush", "OAUTH_PASSWORD=correct horse", "OAUTH_USERNAME=ada"}
	for id, want := range map[string]string{"web": "", "ops": "hush", "": "hush"} {
		s := tokenServer(t, func(_ url.Values, secret string) (int, string) {
			if secret != want {
				t.Errorf("--client-id %q: the secret is %q, want %q", id, secret, want)
			}
			return 200, `{"access_token":"opaque","token_type":"Bearer","expires_in":60}`
		})
		tokenSucceeds(t, environ, "", "--issuer", s.URL, "--grant", "password", "--client-id", id, "--no-cache")
	}
	_, errs, status := runToken(t, environ, "", "--grant", "client_credentials", "--client-id", "shop", "--no-cache")
	if status != command.ExitUsage || !strings.Contains(errs, "client-secret: client_credentials needs one") {
		t.Errorf("exit status %d, want a usage error about the secret: %s", status, errs)
	}
}

func TestTokenPassword(t *testing.T) {
	s := tokenServer(t, func(form url.Values, _ string) (int, string) {
		for name, want := range map[string]string{"username": "ada", "password": "correct horse", "client_id": "web"} {
			if got := form.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		return 200, `{"access_token":"opaque","token_type":"Bearer","expires_in":60,"refresh_token":"r"}`
	})
	environ := []string{"OAUTH_USERNAME=ada", "OAUTH_CLIENT_ID=web", "OAUTH_ISSUER=" + s.URL}
	file := filepath.Join(t.TempDir(), "t.json")
	tokenSucceeds(t, environ, "correct horse\n", "--grant", "password", "--password-stdin", "--cache", file)
	if info, err := os.Stat(file); err != nil || info.IsDir() {
		t.Errorf("the cache file: %v, %v", info, err)
	}
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
		"limited":         {limited, "", nil, command.ExitFailed, "try again in 37s, or give --wait"},
		"wait too long":   {limited, "", []string{"--wait", "--timeout", "10s"}, command.ExitFailed, "cannot wait 37s"},
		"denied":          {denied, "", nil, command.ExitFailed, "invalid_client: Nobody of that name."},
		"no grant":        {"", "", []string{"--grant", ""}, command.ExitUsage, "grant"},
		"unknown flag":    {"", "", []string{"--grand", "x"}, command.ExitUsage, "--grand"},
		"an argument":     {"", "", []string{"shop"}, command.ExitUsage, `unexpected argument "shop"`},
		"empty stdin":     {"", "\n", []string{"--grant", "password", "--password-stdin"}, command.ExitUsage, "holds no secret"},
		"two of stdin":    {"", "a", []string{"--password-stdin", "--refresh-token-stdin"}, command.ExitUsage, "only one of the -stdin flags"},
		"secret twice":    {"", "a", []string{"--client-secret-stdin"}, command.ExitUsage, "--client-secret and --client-secret-stdin cannot be used"},
		"cache and none":  {"", "", []string{"--cache", "f"}, command.ExitUsage, "--cache and --no-cache cannot be used"},
		"http, elsewhere": {"", "", []string{"--issuer", "http://as.example"}, command.ExitUsage, "secrets need https"},
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
			if status != tc.wantStatus || !strings.Contains(errs, tc.want) || out != "" {
				t.Errorf("exit status %d, want %d and %q: %s%s", status, tc.wantStatus, tc.want, out, errs)
			}
		})
	}
}
