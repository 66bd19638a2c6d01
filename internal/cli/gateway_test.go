package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
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
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "*" { // which a mux refuses
			mux.ServeHTTP(w, r)
			return
		}
		_, err := io.WriteString(w, "upstream *")
		check.OK(t, err)
	}))
	s.Config.DisableGeneralOptionsHandler = true
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// TestGateway: limits of clients that are not registered, set in the configuration and by operators; everything else as
// it is; and a clean stop.
func TestGateway(t *testing.T) {
	data, file := storeFile(t), filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte(`gateway:
  upstream: `+tokenUpstream(t)+`
  token_path: [ /oauth2/token ]
rate_limit:
  clients: { shop: { client: [ { name: tight, requests: 2, window: 1h } ] } }
`), 0o600))
	ops := newClient(t, "ops --admin", "--data", data)
	o := serving(t, "gateway", "--config", file, "--data", data)
	o.awaitLog(t, `msg="limiting token requests" upstream=http://127.0.0.1:`)
	token := askToken(t, o.operators, ops)
	runJSON(t, &map[string]any{}, "", "limits", "set", "https://app.example/", "--client", "1/1h", "--yes", "--server", o.operators, "--token", token)
	for id, most := range map[string]int{"shop": 2, "https://app.example/": 1} {
		for i := range most + 1 {
			status, body := postForm(t, o.clients+"/oauth2/token", credentials{ClientID: url.QueryEscape(id), ClientSecret: "x"}, url.Values{"grant_type": {"client_credentials"}})
			if over := i == most; over != (status == http.StatusTooManyRequests) || over != strings.Contains(body, "quota-exceeded") {
				t.Errorf("request %d of %s: status %d: %s", i+1, id, status, body)
			}
		}
	}
	var registered []struct {
		ID string `json:"client_id"`
	}
	runJSON(t, &registered, "", "client", "list", "--server", o.operators, "--token", token)
	check.Equal(t, "clients of its own, without those that it has seen", len(registered), 1)
	for _, path := range []string{"/healthz", "/token"} {
		check.Equal(t, path, page(t, o.clients+path), "upstream "+path)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, o.clients, nil)
	check.OK(t, err)
	req.URL.Opaque = "*"
	_, body := send(t, req)
	check.Equal(t, "OPTIONS *", body, "upstream *")
	o.stop(t)
	hasNot(t, o.log.String(), "unregistered")
}

func TestGatewayOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no upstream":             {[]string{"gateway"}, "--upstream is missing"},
		"no token path":           {[]string{"gateway", "--upstream", "https://idp.example"}, "gateway.token_path"},
		"a path":                  {[]string{"gateway", "--upstream", "https://idp.example/auth", "--token-path", "/token"}, "only a scheme and a host"},
		"http elsewhere":          {[]string{"gateway", "--upstream", "http://192.0.2.1", "--token-path", "/token"}, "must be https"},
		"a pattern in a name":     {[]string{"gateway", "--upstream", "https://idp.example", "--token-path", "token"}, "begins with /"},
		"a public judge":          {[]string{"gateway", "--judge", "--listen", "0.0.0.0:0"}, "use up limits"},
		"a judge and upstream":    {[]string{"gateway", "--judge", "--upstream", "https://idp.example", "--token-path", "/token"}, "cannot be used together with upstream"},
		"a public Envoy":          {[]string{"gateway", "--judge", "--envoy-listen", "0.0.0.0:0"}, "use up limits"},
		"Envoy and upstream":      {[]string{"gateway", "--envoy-listen", "127.0.0.1:0", "--upstream", "https://idp.example", "--token-path", "/token"}, "needs judge"},
		"Envoy alone":             {[]string{"gateway", "--envoy-listen", "127.0.0.1:0"}, "needs judge"},
		"no address for Envoy":    {[]string{"gateway", "--judge", "--envoy-listen", "here"}, "gateway.envoy_listen"},
		"a path of a judge":       {[]string{"gateway", "--judge", "--token-path", "token"}, "begins with /"},
		"a port that is none":     {[]string{"gateway", "--upstream", "https://idp.example:99999", "--token-path", "/token"}, "is not a URL such as"},
		"a judge's claim":         {[]string{"gateway", "--judge", "--subject-claim", "name"}, "gateway.subject_claim: has no effect with judge"},
		"a judge's memory":        {[]string{"gateway", "--judge", "--max-subjects", "5000"}, "gateway.max_subjects: has no effect with judge"},
		"a judge's shared memory": {[]string{"gateway", "--judge", "--share-subjects=false"}, "gateway.share_subjects: has no effect with judge"},
		"a judge's token path":    {[]string{"gateway", "--judge", "--token-path", "/token"}, "gateway.token_path: has no effect with judge, except for envoy_listen"},
		"a demo with a judge":     {[]string{"gateway", "--demo", "--judge", "--check-config"}, "cannot be used together with upstream"},
		"a demo with a store":     {[]string{"gateway", "--demo", "--check-config"}, "its own upstream and a temporary store"},
		"the option of gateway":   {[]string{"serve", "--upstream", "https://idp.example"}, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			runFails(t, command.ExitUsage, tc.want, "", append(tc.args, "--check-config", "--data", "x.db")...)
		})
	}
}

// TestGatewayPrintsItsConfiguration: it can be read again, and has no secret in it.
func TestGatewayPrintsItsConfiguration(t *testing.T) {
	out := runOK(t, "", "gateway", "--print-config", "--upstream", "https://idp.example", "--token-path", "/oauth2/token",
		"--introspection-url", "https://idp.example/introspect", "--introspection-client-id", "gateway", "--introspection-client-secret", "hush")
	has(t, out, "upstream: https://idp.example", "/oauth2/token")
	hasNot(t, out, "hush")
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte(out), 0o600))
	out, _, _ = run(t, "", "gateway", "--check-config", "--config", file, "--introspection-client-secret", "hush")
	check.Equal(t, "checked", out, "ok\n")
}

// TestGatewayHelp: what matters to operators alone is taken and not listed.
func TestGatewayHelp(t *testing.T) {
	help := runOK(t, "", "gateway", "--help")
	has(t, help, "--upstream", "--rate-limit-mode", "--data ")
	hasNot(t, help, "--sessions-ttl", "--passwords-concurrency", "--tokens-code-ttl", "--failed-attempts-window")
	runOK(t, "", "gateway", "--demo", "--check-config", "--sessions-ttl", "1h")
}

// TestServeIsNoGateway: the configuration of a gateway does not become a server by mistake, nor the other way round.
func TestServeIsNoGateway(t *testing.T) {
	_, stderr, status := runWith(t, []string{"OAUTH_UPSTREAM=https://idp.example", "OAUTH_TOKEN_PATH=/token"}, "", "serve", "--check-config")
	check.Equal(t, "status", status, command.ExitUsage)
	has(t, stderr, "run oauth-server gateway")
}

// TestGatewayForEnvoy: both protocols and /judge share the limits, the address in use is said, and a stop ends cleanly.
func TestGatewayForEnvoy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "judge.yaml")
	check.OK(t, os.WriteFile(file, []byte("rate_limit: { default: { client: [ { name: tight, requests: 3, window: 1h } ] } }\n"), 0o600))
	o := serving(t, "gateway", "--judge", "--envoy-listen", "127.0.0.1:0", "--config", file, "--data", storeFile(t))
	_, rest, _ := strings.Cut(o.log.String(), "envoy_address=")
	address := strings.Fields(rest)[0]
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check.OK(t, err)
	t.Cleanup(func() { check.OK(t, conn.Close()) })
	healthy, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "envoy.service.auth.v3.Authorization"})
	check.OK(t, err)
	check.Equal(t, "health", healthy.GetStatus(), healthv1.HealthCheckResponse_SERVING)

	const form = "grant_type=client_credentials&client_id=shop"
	authorize := func() codes.Code {
		out, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
			Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
				Method: http.MethodPost, Path: "/oauth2/token", RawBody: []byte(form),
				Headers: map[string]string{"content-type": "application/x-www-form-urlencoded"},
			}},
		}})
		check.OK(t, err)
		return codes.Code(out.GetStatus().GetCode())
	}
	check.Equal(t, "external authorization", authorize(), codes.OK)
	limited, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
		Domain: "token", Descriptors: []*descriptorv3.RateLimitDescriptor{{Entries: []*descriptorv3.RateLimitDescriptor_Entry{
			{Key: "client_id", Value: "shop"}, {Key: "grant_type", Value: "client_credentials"},
		}}},
	})
	check.OK(t, err)
	check.Equal(t, "rate limit service", limited.GetOverallCode(), ratelimitv3.RateLimitResponse_OK)
	status, _ := postForm(t, o.clients+"/judge", credentials{ClientID: "shop"}, url.Values{"grant_type": {"client_credentials"}})
	check.Equal(t, "/judge", status, http.StatusOK)
	check.Equal(t, "over the limit", authorize(), codes.PermissionDenied)
	has(t, page(t, o.operators+"/metrics"), `oauth_gateway_requests_total{outcome="passed"} 3`, `oauth_gateway_requests_total{outcome="denied"} 1`,
		`oauth_gateway_request_duration_seconds_count{outcome="passed"} 3`, `oauth_gateway_request_duration_seconds_count{outcome="denied"} 1`)

	second := anywhere([]string{"gateway", "--judge", "--envoy-listen", address, "--data", storeFile(t)})
	has(t, runFails(t, command.ExitFailed, "--envoy-listen: ", "", second...), "set another address")
	o.stop(t)
}

// introspectedGateway is before a server of this program, whose tokens do not have the claim that names the user: only its
// introspection endpoint has it.
type introspectedGateway struct {
	upstream, gateway operated
	shop              credentials
	secretFile        string
}

func newIntrospectedGateway(t *testing.T) *introspectedGateway {
	t.Helper()
	data, x := storeFile(t), &introspectedGateway{secretFile: filepath.Join(t.TempDir(), "secret")}
	x.shop = newClient(t, "shop --grant password --grant refresh_token", "--data", data)
	asks := newClient(t, "gateway --resource-server", "--data", data)
	addUsers(t, []string{"--data", data}, "ada")
	x.upstream = serving(t, "serve", "--data", data, "--rate-limit-mode", "off")
	check.OK(t, os.WriteFile(x.secretFile, []byte(asks.ClientSecret+"\n"), 0o600))
	return x
}

// start runs the gateway, which admits two requests of each user.
func (x *introspectedGateway) start(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte(`gateway:
  upstream: `+x.upstream.clients+`
  token_path: [ /token ]
  subject_claim: username
  introspection:
    url: `+x.upstream.clients+`/introspect
    client_id: gateway
    client_secret_file: `+x.secretFile+`
rate_limit:
  default:
    user: [ { name: tight, requests: 2, window: 1h } ]
`), 0o600))
	x.gateway = serving(t, "gateway", "--config", file, "--data", storeFile(t))
}

// token asks for one and returns the status and the refresh token.
func (x *introspectedGateway) token(t *testing.T, form url.Values) (status int, refresh string) {
	t.Helper()
	status, body := postForm(t, x.gateway.clients+"/token", x.shop, form)
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	check.OK(t, json.Unmarshal([]byte(body), &answer), body)
	return status, answer.RefreshToken
}

// knows waits until so many refresh tokens and usernames lead to a user.
func (x *introspectedGateway) knows(t *testing.T, want string) {
	t.Helper()
	check.Eventually(t, want, func() bool { return strings.Contains(page(t, x.gateway.operators+"/metrics"), "\n"+want+"\n") })
}

// TestGatewayIntrospects: the user of a token that does not show one counts, by its refresh token and by the username.
func TestGatewayIntrospects(t *testing.T) {
	x := newIntrospectedGateway(t)
	x.start(t)
	password := url.Values{"grant_type": {"password"}, "username": {"Ada"}, "password": {adaPassword}} // the server's is ada
	status, refresh := x.token(t, password)
	check.Equal(t, "status", status, http.StatusOK)
	x.knows(t, "oauth_gateway_subjects 3")
	status, refresh = x.token(t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
	check.Equal(t, "status of a refresh", status, http.StatusOK)
	for _, form := range []url.Values{password, {"grant_type": {"refresh_token"}, "refresh_token": {refresh}}} {
		status, _ = x.token(t, form)
		check.Equal(t, "status over the limit", status, http.StatusTooManyRequests)
	}
	x.gateway.stop(t)
	hasNot(t, x.gateway.log.String(), "introspection fail")
}

// TestPreviewAtAGateway: a change that enforces more shows the clients that the gateway has seen, says the same with
// --check, and without an answer changes nothing. A name that nobody knows gets a warning.
func TestPreviewAtAGateway(t *testing.T) {
	data, file := storeFile(t), filepath.Join(t.TempDir(), "gateway.yaml")
	check.OK(t, os.WriteFile(file, []byte(`gateway:
  upstream: `+tokenUpstream(t)+`
  token_path: [ /oauth2/token ]
rate_limit:
  mode: dry_run
  default: { user: [ { requests: 5 } ], client: [ { requests: 5 } ] }
`), 0o600))
	ops := newClient(t, "ops --admin", "--data", data)
	o := serving(t, "gateway", "--config", file, "--data", data)
	token := askToken(t, o.operators, ops)
	for range 8 {
		status, _ := postForm(t, o.clients+"/oauth2/token", credentials{ClientID: "batch", ClientSecret: "x"}, url.Values{"grant_type": {"client_credentials"}})
		check.Equal(t, "status", status, http.StatusOK)
	}
	limits := func(args ...string) []string {
		return append(append([]string{"limits"}, args...), "--server", o.operators, "--token", token)
	}
	for _, change := range [][]string{{"dry-run", "off"}, {"dry-run", "batch", "off"}, {"dry-run", "off", "--for", "1h"}} {
		preview, _, status := run(t, "", append(limits(change...), "--check")...)
		check.Equal(t, "status of --check", status, command.ExitOK)
		has(t, preview, "would have denied requests of 1 of 2 active clients: batch (3 requests).")
		for _, answer := range []string{"", "n\n"} {
			out, errs, status := run(t, answer, limits(change...)...)
			check.Equal(t, strings.Join(change, " ")+": status without a yes", status, command.ExitFailed)
			check.Equal(t, "output", out, "")
			has(t, errs, "batch (3 requests).", "Continue?")
		}
		var settings adminapi.Settings
		runJSON(t, &settings, "", limits("get")...)
		check.Equal(t, "mode", settings.Mode, "dry_run")
	}
	var changed any
	out, errs, status := run(t, "", append(limits("trust", "btach"), "-o", "json")...)
	check.Equal(t, "status", status, command.ExitOK)
	has(t, errs, `warning: Client "btach" is unknown`, "did you mean batch?")
	check.OK(t, json.Unmarshal([]byte(out), &changed))
	_, errs, _ = run(t, "", limits("set", "batch", "--client", "9/60s")...)
	check.Equal(t, "of a known client", errs, "")
	o.stop(t)
}

// TestGatewayPages: the command line of each page about a server is accepted.
func TestGatewayPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/gateway/*.md")
	check.OK(t, err)
	pages = append(pages, "../../docs/gateway.md")
	line := regexp.MustCompile(`(?m)^oauth-server (gateway --upstream .*)$`)
	tried := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		check.OK(t, err)
		for _, m := range line.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", ""), -1) {
			args := strings.Fields(strings.ReplaceAll(m[1], "'", "")) // a quoted path has no spaces
			runOK(t, "", append(args, "--check-config")...)
			tried++
		}
	}
	check.Equal(t, "command lines on the pages", tried >= 6, true)
}
