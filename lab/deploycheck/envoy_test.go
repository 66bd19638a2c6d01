package deploycheck

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

// findEnvoy skips the test where there is no Envoy. CI has to have one.
func findEnvoy(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ENVOY_TEST_BINARY"); path != "" {
		return path
	}
	path, err := exec.LookPath("envoy")
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Envoy on this machine: export ENVOY_TEST_BINARY=$(.ci/envoy)")
	}
	t.Skip("no Envoy on this machine: its configurations are parsed, and not tried")
	return ""
}

// envoyBefore is Envoy with one of the configurations of deploy/envoy, in which only the addresses are replaced, a judge
// that admits two requests an hour of each client, and a token endpoint.
type envoyBefore struct {
	url    string
	client *http.Client
	came   atomic.Int32 // requests at the token endpoint
	body   atomic.Value // of the last one
	last   atomic.Pointer[http.Request]
	judge  *process.Process
}

func newEnvoyBefore(t *testing.T, file string) *envoyBefore {
	t.Helper()
	binary := findEnvoy(t) // before the server is built
	e := &envoyBefore{client: clientAt(t, "127.0.0.1")}
	idp := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		check.OK(t, err)
		e.body.Store(string(body))
		e.last.Store(r)
		e.came.Add(1)
	}))
	t.Cleanup(idp.Close)
	address, asked := testworld.FreeAddress(t), testworld.FreeAddress(t)
	config := configured(t, "judge.yaml", "rate_limit: { default: { client: [ { name: tight, requests: 2, window: 1h } ] } }\n")
	e.judge = run(t, asked, servers.Binary(t), "gateway", "--judge", "--listen=127.0.0.1:0", "--envoy-listen="+asked, "--token-path=/oauth2/token",
		"--admin-listen=", "--drain-delay=0s", "--config="+config, "--data="+filepath.Join(t.TempDir(), "oauth.db"))
	e.url = "http://" + address
	text := read(t, "deploy/envoy/"+file)
	for old, by := range map[string]string{
		"address: 0.0.0.0, port_value: 8080": address, "address: 127.0.0.1, port_value: 8081": idp.Listener.Addr().String(),
		"address: 127.0.0.1, port_value: 9098": asked,
	} {
		host, port, err := net.SplitHostPort(by)
		check.OK(t, err)
		check.Equal(t, old, strings.Count(text, old), 1)
		text = strings.Replace(text, old, "address: "+host+", port_value: "+port, 1)
	}
	run(t, address, binary, "--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning", "-c", configured(t, "envoy.yaml", text))
	return e
}

// post sends a token request to a path.
func (e *envoyBefore) post(t *testing.T, path string, header http.Header, form url.Values) (status int, answer http.Header) {
	t.Helper()
	return send(t, e.client, http.MethodPost, e.url+path, header, form)
}

// wantLimited asks until the client is over its limit, and looks at the answer.
func (e *envoyBefore) wantLimited(t *testing.T, header http.Header, form url.Values, scripts string) {
	t.Helper()
	const evil, site = "evil.example", "https://app.example"
	header = header.Clone()
	header["Origin"] = []string{site}
	for _, name := range []string{
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server",
		"X-Real-Ip", "X-Original-Url", "X-Rewrite-Url", "X_Forwarded_Host",
	} {
		header[name] = []string{evil}
	}
	for i, want := range []int{200, 200, 429} {
		status, h := e.post(t, "/oauth2/token", header, form)
		check.Equal(t, "status", status, want)
		check.Equal(t, "RateLimit-Policy", h.Get("RateLimit-Policy"), `"tight";q=2;w=3600`)
		check.Equal(t, "RateLimit is set", h.Get("RateLimit") != "", true)
		check.Equal(t, "RateLimit is exposed", strings.Contains(h.Get("Access-Control-Expose-Headers"), "RateLimit, RateLimit-Policy"), true)
		if want == http.StatusTooManyRequests {
			check.Equal(t, "Retry-After is set", h.Get("Retry-After") != "", true)
			check.Equal(t, "type", h["Content-Type"], []string{"application/json"})
			check.Equal(t, "cache", h.Get("Cache-Control"), "no-store")
			check.Equal(t, "scripts may read it", h["Access-Control-Allow-Origin"], []string{scripts})
		}
		check.Equal(t, "requests at the token endpoint", int(e.came.Load()), min(i+1, 2))
	}
	for _, path := range []string{
		"/OAuth2/Token", "/oauth2;a=b/token;c", "/oauth2//./token/", "/oauth2/%74oken",
		"/oauth2/token/x", "/oauth2/token.json", "/oauth2/token%20", "/index.php/oauth2/token/x", "/web/index.php/oauth2/token/x",
	} {
		status, _ := e.post(t, path, header, form)
		check.Equal(t, path, status, 429)
	}
	status, _ := e.post(t, "/oauth2%2ftoken", header, form)
	check.Equal(t, "an escaped slash", status, 400)
	for path, want := range map[string]int{"/x/..;/oauth2/token": 429, "/oauth2/.;/token": 429, "/;a=b/oauth2/token": 400} { // to Tomcat the same
		status, _ := e.post(t, path, header, form)
		check.Equal(t, path, status, want)
	}
	status, _ = e.post(t, "/other", header, url.Values{"client_id": {"a", "b"}})
	check.Equal(t, "another path", status, 200)
	last := e.last.Load()
	check.Equal(t, "Host", last.Host, "auth.example.com")
	for name, want := range map[string]string{
		"X-Forwarded-Host": "auth.example.com", "X-Forwarded-Proto": "http", "X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1",
	} {
		check.Equal(t, name, last.Header[name], []string{want})
	}
	for name, values := range last.Header {
		check.Equal(t, name+" is forged", strings.Contains(strings.Join(values, ""), evil), false)
	}
}

// wantOpen stops the judge: requests pass then.
func (e *envoyBefore) wantOpen(t *testing.T, header http.Header, form url.Values) {
	t.Helper()
	check.OK(t, e.judge.Stop())
	status, _ := e.post(t, "/oauth2/token", header, form)
	check.Equal(t, "without a judge", status, 200)
}

// TestEnvoyAuthorizes is deploy/envoy/ext_authz.yaml.
func TestEnvoyAuthorizes(t *testing.T) {
	e := newEnvoyBefore(t, "ext_authz.yaml")
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"shop"}, "client_secret": {"!ü%"}}
	e.wantLimited(t, http.Header{}, form, "https://app.example")
	status, _ := e.post(t, "/oauth2/token", basic("basic"), url.Values{"grant_type": {"client_credentials"}})
	check.Equal(t, "by Basic", status, 200)
	for path, form := range map[string]url.Values{
		"/oauth2/token/introspect": {"token": {"t"}, "client_id": {"shop"}}, "/oauth2/token.png": {"a": {"b"}},
	} {
		status, _ = e.post(t, path, basic("shop"), form)
		check.Equal(t, path, status, 200)
	}
	status, _ = send(t, e.client, http.MethodOptions, e.url+"/oauth2/token", http.Header{}, form)
	check.Equal(t, "OPTIONS with a body", status, 429)
	status, _ = send(t, e.client, http.MethodOptions, e.url+"/oauth2/token?grant_type=client_credentials", http.Header{}, nil)
	check.Equal(t, "OPTIONS with a query", status, 400)
	before := e.came.Load()
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		form   url.Values
		want   int
	}{
		"two clients":          {"", basic("shop"), url.Values{"client_id": {"other"}}, 400},
		"in the query":         {"?client_id=shop", http.Header{}, form, 400},
		"twice":                {"", http.Header{}, url.Values{"client_id": {"shop", "shop"}}, 400},
		"two Authorizations":   {"", http.Header{"Authorization": {"Bearer x", basic("shop").Get("Authorization")}}, url.Values{}, 400},
		"compressed":           {"", http.Header{"Content-Encoding": {"gzip"}}, form, 400},
		"longer than 64 KiB":   {"", http.Header{}, url.Values{"x": {strings.Repeat("x", 66_000)}}, 413},
		"the field of Envoy's": {"", http.Header{"X-Envoy-Auth-Partial-Body": {"true"}}, form, 429},
	} {
		status, _ := e.post(t, "/oauth2/token"+tc.path, tc.header, tc.form)
		check.Equal(t, name, status, tc.want)
	}
	check.Equal(t, "requests at the token endpoint", e.came.Load(), before)
	e.wantOpen(t, http.Header{}, form)
	check.Equal(t, "the body at the token endpoint", e.body.Load(), any(form.Encode()))
}

// TestEnvoyLimits is deploy/envoy/ratelimit.yaml.
func TestEnvoyLimits(t *testing.T) {
	e := newEnvoyBefore(t, "ratelimit.yaml")
	form := url.Values{"grant_type": {"client_credentials"}}
	e.wantLimited(t, basic("shop"), form, "*")
	for id, want := range map[string]int{"shop+%26%2b": 200, "a much longer name of a client": 200, "%73hop": 429, "": 401} {
		status, _ := e.post(t, "/oauth2/token", basic(id), form)
		check.Equal(t, id, status, want)
	}
	for name, header := range map[string]http.Header{
		"without Basic": {}, "Bearer": {"Authorization": {"Bearer x"}},
		"two Authorizations": {"Authorization": {"Bearer x", basic("shop").Get("Authorization")}},
	} {
		status, _ := e.post(t, "/oauth2/token", header, url.Values{"client_id": {"shop"}})
		check.Equal(t, name, status, 401)
	}
	e.wantOpen(t, basic("shop"), form)
}
