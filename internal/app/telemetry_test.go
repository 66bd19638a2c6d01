package app

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// withOperators returns a server that also serves the admin API.
func withOperators(tb testing.TB) *config.Config {
	tb.Helper()
	cfg := testConfig(tb)
	cfg.AdminListen = "127.0.0.1:0"
	return cfg
}

func TestMetricsShowWhatTheServerDid(t *testing.T) {
	r := start(t, limited(t, func(r *config.RateLimit) {
		r.Clients = map[string]ratelimit.Policy{"shop": {Mode: "dry_run"}}
	}), io.Discard)
	client := newClient(t, nil)
	r.token(t, client)
	get(t, client, r.Issuer()+"/no/such/page")
	page := get(t, client, "http://"+r.AdminAddr()+"/metrics").body
	for _, want := range []string{
		`oauth_token_responses_total{error="none",grant_type="client_credentials"} 1`,
		`oauth_http_request_duration_seconds_count{code="200",method="POST",route="/token"} 1`,
		`oauth_http_request_duration_seconds_count{code="404",method="GET",route="other"} 1`,
		`oauth_http_request_db_calls_sum{route="/token"} 0`,
		`oauth_store_operation_duration_seconds_count{operation="list_clients"} 1`,
		`oauth_store_errors_total{operation="list_clients"} 0`,
		`oauth_http_requests_in_flight 0`,
		`oauth_config_age_seconds{config="clients"} `,
		`oauth_config_revision{config="clients"} `,
		`oauth_config_age_seconds{config="policies"} `,
		`oauth_config_revision{config="policies"} 0`,
		`oauth_build_info{goversion="go`,
		`go_goroutines `,
		`oauth_ratelimit_limit{client_id="shop",grants="",kind="client",limit="per-hour"} 2`,
		`oauth_ratelimit_limit{client_id="shop",grants="",kind="user",limit="per-minute"} 100`,
		`oauth_ratelimit_mode{client_id="shop",mode="dry_run"} 1`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
	client.CloseIdleConnections()
}

// TestWhoIsServedWhat: operators see health, clients no metrics, and without an address there are no
// operators.
func TestWhoIsServedWhat(t *testing.T) {
	r := start(t, withOperators(t), io.Discard)
	client := newClient(t, nil)
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`} {
		got := get(t, client, "http://"+r.AdminAddr()+path)
		check.Equal(t, path, got.StatusCode, http.StatusOK)
		check.Equal(t, path, strings.TrimSpace(got.body), want)
	}
	check.Equal(t, "metrics for clients", get(t, client, r.Issuer()+"/metrics").StatusCode, http.StatusNotFound)
	client.CloseIdleConnections()
	check.Equal(t, "address of operators without one", start(t, testConfig(t), io.Discard).AdminAddr(), "")
}

// The default address was not configured explicitly. If it is in use, that is logged and the server
// starts.
func TestTheDefaultAdminAddressInUseStopsNothing(t *testing.T) {
	// Either the test gets the address, or another process already has it.
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", config.DefaultAdminListen); err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	cfg := testConfig(t)
	cfg.AdminListen = config.DefaultAdminListen
	var log bytes.Buffer
	r := start(t, cfg, &log)
	check.Equal(t, "address of operators", r.AdminAddr(), "")
	if err := r.stop(); err != nil { // before the log is read
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "set --admin-listen") {
		t.Errorf("nothing is said: %s", log.String())
	}
}

func TestAnAdminAddressInUseStopsTheStart(t *testing.T) {
	r := start(t, withOperators(t), io.Discard)
	cfg := withOperators(t)
	cfg.AdminListen = r.AdminAddr()
	want := "--admin-listen: listen tcp " + cfg.AdminListen + ": bind: address already in use; set another address with --admin-listen"
	if _, err := New(t.Context(), cfg, Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAPanicOfALoopIsCounted(t *testing.T) {
	s := idle(t, withOperators(t), Options{})
	err := s.base.loops.Guard(t.Context(), "sweep", func(context.Context) error { panic("boom") })
	if err == nil || err.Error() != "panic: boom" {
		t.Errorf("error %v", err)
	}
	families, err := s.base.telemetry.registry.Gather()
	check.OK(t, err)
	for _, f := range families {
		if f.GetName() == "oauth_loop_panics_total" && f.GetMetric()[0].GetCounter().GetValue() == 1 {
			return
		}
	}
	t.Error("not counted")
}

func TestTokenErrors(t *testing.T) {
	tests := map[string]struct {
		answer httpapi.Answer
		want   string
	}{
		"token":         {httpapi.Answer{Status: 200}, ""},
		"wrong code":    {httpapi.Answer{Status: 400, Error: "invalid_grant"}, "invalid_grant"},
		"rate limit":    {httpapi.Answer{Status: 429, Error: "temporarily_unavailable"}, metrics.RateLimited},
		"another code":  {httpapi.Answer{Status: 429, Error: "slow_down"}, metrics.RateLimited},
		"not available": {httpapi.Answer{Status: 503, Error: "temporarily_unavailable"}, "temporarily_unavailable"},
		"overload":      {httpapi.Answer{Status: 503, Error: "temporarily_unavailable", Shed: overload.Processor}, metrics.Overloaded},
	}
	for name, tt := range tests {
		check.Equal(t, name, tokenError(tt.answer), tt.want)
	}
}

// A collector receives the request with the limiter's decision and its store operations.
func TestRequestsAreTraced(t *testing.T) {
	sent := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent <- string(body)
	}))
	defer collector.Close()
	cfg := withOperators(t)
	cfg.Tracing = config.Tracing{Endpoint: collector.URL, SampleRatio: 1}
	r := start(t, cfg, io.Discard)
	client := newClient(t, nil)
	r.token(t, client)
	page := get(t, client, "http://"+r.AdminAddr()+"/metrics").body
	if strings.Contains(page, "trace_id") {
		t.Error("the plain format has exemplars")
	}
	client.CloseIdleConnections()
	check.OK(t, r.stop())
	spans := <-sent
	for _, want := range []string{"POST /token", "ratelimit.outcome", "allowed", "per-minute", "oauth.client_id", "shop"} {
		if !strings.Contains(spans, want) {
			t.Errorf("the spans lack %s", want)
		}
	}
	if strings.Contains(spans, r.secret) {
		t.Error("the spans hold a secret")
	}
}
