package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// TestSecretGoesToTheServerOnly: the commands of operators send their secret to the address that they were given, once that
// answers as an issuer for itself, and to no other one that an answer names.
//
// Attack (operators): Stealing an operator's secret. Commands send it to the given address only,
// whatever metadata and redirects name. Also tokenclient.TestMetadataThatCannotBeTrusted.
func TestSecretGoesToTheServerOnly(t *testing.T) {
	const secret = "secret-of-the-operator"
	for name, tt := range map[string]struct {
		metadata func(own, thief string) map[string]string // nil: there are none
		redirect string                                    // path whose requests are sent to the thief
		own      bool                                      // the server itself gets it
	}{
		"no metadata":             {nil, "", false},
		"of another issuer":       {func(_, thief string) map[string]string { return document(thief, thief) }, "", false},
		"of an issuer below":      {func(own, _ string) map[string]string { return document(own+"/stolen", own) }, "", false},
		"endpoint elsewhere":      {document, "", false},
		"endpoint far away":       {func(own, _ string) map[string]string { return document(own, "https://thief.example") }, "", false},
		"redirected metadata":     {func(own, _ string) map[string]string { return document(own, own) }, "/.well-known/oauth-authorization-server", false},
		"redirected request":      {func(own, _ string) map[string]string { return document(own, own) }, "/token", true},
		"redirected call with it": {func(own, _ string) map[string]string { return document(own, own) }, "/admin/v1/clients", true},
	} {
		t.Run(name, func(t *testing.T) {
			had := func(into *bool) func(r *http.Request) {
				return func(r *http.Request) {
					_, password, _ := r.BasicAuth()
					*into = *into || password == secret || r.PostFormValue("client_secret") == secret
				}
			}
			var stolen, sent, leaked bool
			thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				had(&stolen)(r)
				leaked = leaked || r.Header.Get("Authorization") != ""
				w.WriteHeader(http.StatusNotFound)
			}))
			t.Cleanup(thief.Close)
			own := httptest.NewUnstartedServer(nil)
			own.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				had(&sent)(r)
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("WWW-Authenticate", `Bearer realm="x", issuer="`+thief.URL+`"`)
				switch {
				case r.URL.Path == tt.redirect:
					http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
				case strings.HasPrefix(r.URL.Path, "/.well-known/") && tt.metadata != nil:
					check.OK(t, json.NewEncoder(w).Encode(tt.metadata("http://"+r.Host, thief.URL)))
				case r.URL.Path == "/token":
					check.OK(t, json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 60}))
				default:
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			own.Start()
			t.Cleanup(own.Close)
			stderr := runFails(t, command.ExitFailed, "", "", "limits", "list", "--server", own.URL, "--client-id", "ops", "--client-secret", secret, "--no-cache")
			check.Equal(t, "stolen", stolen || leaked, false)
			check.Equal(t, "sent", sent, tt.own)
			if !tt.own {
				has(t, stderr, "no issuer at", "--issuer")
			}
		})
	}
}

func document(issuer, endpoint string) map[string]string {
	return map[string]string{"issuer": issuer, "token_endpoint": endpoint + "/token"}
}

// TestOperatorsGetTokensOnTheAdminAddress: also where the issuer cannot be reached, by any name of the address. Guesses count
// wherever they were made.
func TestOperatorsGetTokensOnTheAdminAddress(t *testing.T) {
	data := storeFile(t)
	var ops credentials
	runJSON(t, &ops, "", "client", "create", "ops", "--admin", "--data", data)
	server := serving(t, "serve", "--data", data, "--issuer", "https://auth.example", "--trusted-proxies", "127.0.0.0/8",
		"--failed-attempts-clients-per-name", "3")
	operatorsWork(t, server, ops)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.operators, "http://"), ":")
	runOK(t, "", "limits", "list", "--server", "http://localhost:"+port, "--client-id", "ops", "--client-secret", ops.ClientSecret, "--no-cache") // by another name
	token, stderr, status := run(t, "", "token", "--issuer", server.operators, "--grant", "client_credentials", "--client-id", "ops", "--client-secret", ops.ClientSecret, "--no-cache")
	if status != command.ExitOK || len(strings.TrimSpace(token)) == 0 {
		t.Errorf("oauth-server token: %s", stderr)
	}
	for path, want := range map[string]int{"/": 404, "/authorize": 404, "/sign-in": 404, "/introspect": 404, "/revoke": 404, "/token": 405} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.operators+path, nil)
		check.OK(t, err)
		status, _ := send(t, req)
		check.Equal(t, path, status, want)
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	for i, at := range []string{server.clients, server.operators, server.clients} {
		status, body := postForm(t, at+"/token", credentials{ClientID: "ops", ClientSecret: "wrong"}, form)
		if status != http.StatusUnauthorized {
			t.Fatalf("guess %d: status %d: %s", i+1, status, body)
		}
	}
	for _, at := range []string{server.operators, server.clients} {
		status, body := postForm(t, at+"/token", credentials{ClientID: "ops", ClientSecret: "wrong"}, form)
		if status != http.StatusTooManyRequests {
			t.Errorf("a guess too many at %s: status %d: %s", at, status, body)
		}
	}
	server.stop(t)
}

// operatorsWork runs a command with nothing but the admin address of a server and a secret.
func operatorsWork(t *testing.T, server operated, ops credentials) {
	t.Helper()
	environ := []string{"OAUTH_SERVER=" + server.operators, "OAUTH_CLIENT_ID=" + ops.ClientID, "OAUTH_CLIENT_SECRET=" + ops.ClientSecret + "\r\n"}
	if stdout, stderr, status := runWith(t, environ, "", "limits", "list", "--all", "--no-cache"); status != command.ExitOK || !strings.Contains(stdout, ops.ClientID) {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}
