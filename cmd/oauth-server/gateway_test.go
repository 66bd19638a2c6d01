package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
)

// tokenUpstream is a server whose token endpoint gives everybody a token, and everything else is its path.
func tokenUpstream(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth2/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, err := io.WriteString(w, `{"access_token":"opaque","token_type":"Bearer","expires_in":60}`)
		check.OK(t, err)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, err := io.WriteString(w, "upstream "+r.URL.Path)
		check.OK(t, err)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// ask sends a form, or a GET if there is none, and returns the status and the body.
func ask(t *testing.T, address string, form url.Values) (int, string) {
	t.Helper()
	get := func() (*http.Response, error) { return http.Get(address) }
	if form != nil {
		get = func() (*http.Response, error) { return http.PostForm(address, form) }
	}
	res, err := get()
	check.OK(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	check.OK(t, err)
	return res.StatusCode, string(text)
}

// TestGateway: limits of clients that nobody has registered, everything else as it is, and a clean stop.
func TestGateway(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte(`gateway:
  upstream: `+tokenUpstream(t)+`
  token_path: [ /oauth2/token ]
rate_limit:
  clients: { shop: { client: [ { name: tight, requests: 2, window: 1h } ] } }
`), 0o600))
	p := launch(t, "gateway", "--config", file, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data", storeFile(t))
	at := "http://" + p.listening(t)
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"shop"}}
	for i, want := range []int{200, 200, 429} {
		status, body := ask(t, at+"/oauth2/token", form)
		check.Equal(t, "status", status, want)
		check.Equal(t, "ours", strings.Contains(body, "quota-exceeded"), i == 2)
	}
	form.Set("client_id", "other")
	status, _ := ask(t, at+"/oauth2/token", form)
	check.Equal(t, "status of another client", status, 200)
	_, body := ask(t, at+"/healthz", nil)
	check.Equal(t, "another path", body, "upstream /healthz")
	check.OK(t, p.Process.Signal(syscall.SIGTERM))
	check.Equal(t, "exit status", p.status(t), exitOK)
	if log := p.log.String(); strings.Contains(log, "not registered") {
		t.Errorf("the log says that clients are not registered:\n%s", log)
	}
}

func TestGatewayOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no upstream":           {[]string{"gateway"}, "--upstream is missing"},
		"no token path":         {[]string{"gateway", "--upstream", "https://idp.example"}, "gateway.token_path"},
		"a path":                {[]string{"gateway", "--upstream", "https://idp.example/auth", "--token-path", "/token"}, "a scheme and a host only"},
		"http elsewhere":        {[]string{"gateway", "--upstream", "http://192.0.2.1", "--token-path", "/token"}, "must be https"},
		"a pattern in a name":   {[]string{"gateway", "--upstream", "https://idp.example", "--token-path", "token"}, "begins with /"},
		"the option of gateway": {[]string{"serve", "--upstream", "https://idp.example"}, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, append(tc.args, "--data", storeFile(t), "--listen", "127.0.0.1:0")...)
			if status := p.status(t); status == exitOK || !strings.Contains(p.log.String(), tc.want) {
				t.Errorf("status %d, want the error %q:\n%s", status, tc.want, p.log.String())
			}
		})
	}
}

// TestServeIsNoGateway: the configuration of a gateway does not become a server by mistake, nor the other way round.
func TestServeIsNoGateway(t *testing.T) {
	cmd := command(t, "serve", "--data", storeFile(t), "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "OAUTH_UPSTREAM=https://idp.example", "OAUTH_TOKEN_PATH=/token")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "run oauth-server gateway") {
		t.Errorf("%v: %s", err, out)
	}
}
