package metrics_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
)

func newMetrics(tb testing.TB, o metrics.Options) (*metrics.Metrics, *prometheus.Registry) {
	tb.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.New(reg, o)
	check.OK(tb, err)
	return m, reg
}

func shows(tb testing.TB, page, text string) {
	tb.Helper()
	if !strings.Contains(page, text) {
		tb.Errorf("the page does not show %s", text)
	}
}

// showsLines checks that the page has these lines, or lines that end so.
func showsLines(tb testing.TB, page string, lines ...string) {
	tb.Helper()
	for _, line := range lines {
		shows(tb, page, line+"\n")
	}
}

// exercise makes every metric export at least one series.
func exercise(m *metrics.Metrics) {
	m.WatchPolicies(policies)
	m.WatchMemory(func() counting.Stats { return counting.Stats{Keys: 3, MaxKeys: 9, Evicted: 1} })
	m.WatchSync(func() syncer.Stats { return syncer.Stats{Age: time.Second, Waiting: 2, Due: 1} })
	m.WatchWaiting(func() int { return 3 })
	m.WatchOverload(overloaded)
	m.WatchStoreQueue(storeQueue)
	m.WatchGateway(gatewayStats, sharedStats)
	m.GatewayAnswered("issued", time.Millisecond)
	m.GatewayExchanged(true, 200, "", time.Millisecond)
	m.Delay(time.Second)
	m.PasswordHashed(true)
	m.WatchConfig(func() metrics.Config { return metrics.Config{Limits: "00000000000000ff"} })
	m.Decision("shop", "client_credentials", ratelimit.Denied)
	m.LeaseWait(ratelimit.Allowed, 20*time.Millisecond)
	m.SoftWarning("shop", "client_credentials")
	m.Issued("shop", "client_credentials", true)
	m.BanBegan("shop", ratelimit.Banned)
	m.WatchBans(func() bans.Stats { return bans.Stats{Active: 2, Longest: time.Hour, Waiting: 1} })
	m.Usage("shop", 0.9)
	m.Request(metrics.Request{Route: "/token", Method: "POST", Code: 200, Duration: time.Millisecond})
	m.Token("client_credentials", "")
	storeCall(context.Background(), m, "load", true)
	m.Call(syncer.OpWrite, 10, time.Millisecond, nil)
	m.WatchConnections(func() []metrics.Connections { return []metrics.Connections{{Listener: "clients", Open: 1, Most: 2}} })
	m.Panic("syncer")
}

func storeCall(ctx context.Context, m *metrics.Metrics, operation string, failed bool) {
	_, end := m.Begin(ctx, operation)
	end(failed)
}

func TestEveryMetricOfTheCatalogIsExportedAndNoOther(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	exercise(m)
	families, err := reg.Gather()
	check.OK(t, err)
	var exported, listed []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "oauth_") {
			exported = append(exported, f.GetName()+" "+strings.ToLower(f.GetType().String())+" "+labelsOf(f))
		}
	}
	for _, i := range metrics.Catalog() {
		labels := slices.Sorted(slices.Values(i.Labels))
		listed = append(listed, i.Name+" "+string(i.Kind)+" "+strings.Join(labels, ","))
	}
	slices.Sort(listed)
	check.Equal(t, "exported metrics", exported, listed)
}

func labelsOf(f *dto.MetricFamily) string {
	var names []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	return strings.Join(names, ",")
}

func TestNamesFollowThePrometheusConventions(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	exercise(m)
	problems, err := testutil.GatherAndLint(reg)
	check.OK(t, err)
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestDecisions(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	for range 3 {
		m.Decision("shop", "client_credentials", ratelimit.Allowed)
	}
	m.Decision("shop", "client_credentials", ratelimit.Denied)
	m.Decision("shop", "urn:made-up", ratelimit.Allowed)
	check.OK(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP oauth_ratelimit_decisions_total Rate limit decisions. Outcomes: allowed, denied, would_deny (dry-run), reused (over the limit, answered with the last token), would_reuse (dry-run), delayed (over the limit, admitted after a wait), would_delay (dry-run), banned, would_ban (dry-run), trusted. The candidate_ outcomes (candidate_would_deny, _reuse, _delay, _ban) are counted in addition to one of these.
# TYPE oauth_ratelimit_decisions_total counter
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="allowed"} 3
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="candidate_would_deny"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="candidate_would_reuse"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="denied"} 1
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="reused"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="trusted"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="would_deny"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="would_reuse"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="other",outcome="allowed"} 1
oauth_ratelimit_decisions_total{client_id="shop",grant_type="other",outcome="candidate_would_deny"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="other",outcome="denied"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="other",outcome="trusted"} 0
oauth_ratelimit_decisions_total{client_id="shop",grant_type="other",outcome="would_deny"} 0
`), "oauth_ratelimit_decisions_total"))
}

// TestTokens checks that issued and wasted tokens are exported once a token was issued for the
// grant.
func TestTokens(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	m.Issued("shop", "client_credentials", false)
	m.Issued("shop", "client_credentials", true)
	m.Issued("shop", "refresh_token", false)
	check.OK(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP oauth_tokens_issued_total Access tokens issued, without tokens that were returned again (over_limit: reuse).
# TYPE oauth_tokens_issued_total counter
oauth_tokens_issued_total{client_id="shop",grant_type="client_credentials"} 2
oauth_tokens_issued_total{client_id="shop",grant_type="refresh_token"} 1
# HELP oauth_tokens_wasted_total Access tokens issued while an equal one (same client, credential, user and scopes) had more than half of its life left. With refresh_token: early refreshes.
# TYPE oauth_tokens_wasted_total counter
oauth_tokens_wasted_total{client_id="shop",grant_type="client_credentials"} 1
oauth_tokens_wasted_total{client_id="shop",grant_type="refresh_token"} 0
`), "oauth_tokens_issued_total", "oauth_tokens_wasted_total"))
}

// TestOutageDecisions checks that on_outage decisions are counted in addition to the decisions, and
// exported from 0 on for a client that was seen.
func TestOutageDecisions(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 1})
	m.Decision("shop", "client_credentials", ratelimit.Allowed)
	m.OutageDecision("shop", ratelimit.Allowed)
	m.OutageDecision("shop", ratelimit.Denied)
	m.OutageDecision("shop", ratelimit.Denied)
	m.OutageDecision("shop", ratelimit.Trusted) // a trusted client is never decided by a limit
	m.Decision("app", "client_credentials", ratelimit.WouldDeny)
	m.OutageDecision("app", ratelimit.WouldDeny)
	check.OK(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP oauth_ratelimit_outage_decisions_total Decisions by a limit's on_outage (share or deny) while counts cannot be shared: allowed, denied, would_deny (dry-run). The last two include requests that got the last token again.
# TYPE oauth_ratelimit_outage_decisions_total counter
oauth_ratelimit_outage_decisions_total{client_id="other",outcome="allowed"} 0
oauth_ratelimit_outage_decisions_total{client_id="other",outcome="denied"} 0
oauth_ratelimit_outage_decisions_total{client_id="other",outcome="would_deny"} 1
oauth_ratelimit_outage_decisions_total{client_id="shop",outcome="allowed"} 1
oauth_ratelimit_outage_decisions_total{client_id="shop",outcome="denied"} 2
oauth_ratelimit_outage_decisions_total{client_id="shop",outcome="would_deny"} 0
`), "oauth_ratelimit_outage_decisions_total"))
}

func TestPolicies(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	m.WatchPolicies(policies)
	m.Decision("newcomer", "password", ratelimit.Allowed)
	page := scrape(t, reg)
	showsLines(t, page,
		`oauth_ratelimit_limit{client_id="shop",grants="",kind="user",limit="per-second"} 2`,
		`oauth_ratelimit_limit_window_seconds{client_id="shop",grants="",kind="user",limit="per-second"} 1`,
		`oauth_ratelimit_limit{client_id="newcomer",grants="",kind="user",limit="per-minute"} 100`,
		`oauth_ratelimit_default_limit{grants="",kind="user",limit="per-minute"} 100`,
		`oauth_ratelimit_default_limit_window_seconds{grants="",kind="user",limit="per-minute"} 60`,
		`oauth_ratelimit_trusted{client_id="mobile-app"} 1`,
		`oauth_ratelimit_trusted{client_id="shop"} 0`,
		`oauth_ratelimit_mode{client_id="shop",mode="enforce"} 1`,
		`oauth_ratelimit_decisions_total{client_id="mobile-app",grant_type="refresh_token",outcome="denied"} 0`,
		`oauth_metrics_labelled_clients 3`,
	)
	if strings.Contains(page, `oauth_ratelimit_limit{client_id="other"`) {
		t.Errorf("the page shows %s", `oauth_ratelimit_limit{client_id="other"`)
	}
}

// Neither the requests of clients nor the policies of operators can add series without bound. The
// names of routes, store operations and loops are those of this program.
func TestSeriesAreBounded(t *testing.T) {
	const most = 20
	m, reg := newMetrics(t, metrics.Options{MaxClients: most})
	m.WatchPolicies(manyPolicies(1000))
	for i := range 10_000 {
		name := "name" + strconv.Itoa(i)
		m.Decision(name, name, ratelimit.Allowed)
		m.OutageDecision(name, ratelimit.Denied)
		m.SoftWarning(name, name)
		m.Issued(name, name, true)
		m.Usage(name, 1)
		m.Token(name, name)
		m.Request(metrics.Request{Route: "/token", Method: name, Code: i})
		m.GatewayExchanged(i%2 == 0, i, "", time.Second)
	}
	series := map[string]int{}
	families, err := reg.Gather()
	check.OK(t, err)
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	for name, bound := range map[string]int{
		"oauth_ratelimit_usage_ratio":             most + 1,
		"oauth_ratelimit_decisions_total":         (most + 1) * 5 * 6,
		"oauth_ratelimit_outage_decisions_total":  (most + 1) * 3,
		"oauth_tokens_wasted_total":               (most + 1) * 5,
		"oauth_ratelimit_limit":                   most * 2,
		"oauth_ratelimit_mode":                    most,
		"oauth_ratelimit_trusted":                 most,
		"oauth_metrics_labelled_clients":          1,
		"oauth_token_responses_total":             5 * 11,
		"oauth_gateway_upstream_duration_seconds": 2 * 501,
		"oauth_http_request_db_calls":             1,
	} {
		if series[name] > bound {
			t.Errorf("%s has %d series, more than %d", name, series[name], bound)
		}
	}
}

func TestStoreCallsAreCountedPerRequest(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{})
	ctx, calls := metrics.CountCalls(context.Background())
	storeCall(ctx, m, "redeem_code", false)
	storeCall(ctx, m, "create_refresh_token", true)
	check.Equal(t, "calls counted", calls.Load(), 2)
	check.Equal(t, "calls in a context without a counter", metrics.Calls(context.Background()), 0)
	m.Request(metrics.Request{Route: "/token", Method: "POST", Code: 200, DBCalls: metrics.Calls(ctx)})
	page := scrape(t, reg)
	shows(t, page, `oauth_http_request_db_calls_sum{route="/token"} 2`)
	shows(t, page, `oauth_store_errors_total{operation="create_refresh_token"} 1`)
	shows(t, page, `oauth_store_errors_total{operation="redeem_code"} 0`)
}

func TestSync(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{})
	m.Call(syncer.OpWrite, 12, time.Millisecond, errors.New("away"))
	m.Call(syncer.OpClock, 1, time.Millisecond, nil)
	m.SyncLeftover(7)
	m.WatchSync(func() syncer.Stats {
		return syncer.Stats{
			Age: 1500 * time.Millisecond, Waiting: 4, Due: 3, Instances: 2,
			Applied: 12, Fallback: 2, Conflicts: 3, Unknown: 1, Drift: 1,
			Unconfirmed: 2500 * time.Millisecond, Stalled: true, Clones: 6, Clock: clock.State{Wall: time.Hour, Store: -20 * time.Millisecond},
		}
	})
	page := scrape(t, reg)
	showsLines(t, page,
		`oauth_sync_commands_total{command="write"} 1`,
		`oauth_sync_commands_total{command="beat"} 0`,
		`oauth_sync_command_failures_total{command="write"} 1`,
		`oauth_sync_bulk_size_sum{command="write"} 12`,
		`oauth_sync_final_flush_leftover 7`,
		`oauth_sync_g_age_seconds 1.5`,
		`oauth_sync_dirty_keys 4`,
		`oauth_sync_due_keys 3`,
		`oauth_sync_instances 2`,
		`oauth_sync_writes_total{outcome="applied"} 10`,
		`oauth_sync_writes_total{outcome="fallback"} 2`,
		`oauth_sync_writes_total{outcome="rejected"} 0`,
		`oauth_sync_drift_total 1`,
		`oauth_sync_unconfirmed_seconds 2.5`,
		`oauth_ratelimit_outage 1`,
		`oauth_sync_clones_total 6`,
		`oauth_clock_offset_seconds{clock="wall"} 3600`,
		`oauth_clock_offset_seconds{clock="store"} -0.02`,
	)
	if strings.Contains(page, `oauth_sync_bulk_size_sum{command="clock"}`) {
		t.Errorf("the page shows %s", `oauth_sync_bulk_size_sum{command="clock"}`)
	}
}

// The hash of the limits is exact as a number, and differs if any of its digits differs.
func TestConfigFile(t *testing.T) {
	for digest, want := range map[string]string{
		"0123456789abcdef": "1.250999896491e+12", "0123456789acffff": "1.250999896492e+12", "ffffffffffff0000": "2.81474976710655e+14", "": "0",
	} {
		m, reg := newMetrics(t, metrics.Options{})
		m.WatchConfig(func() metrics.Config { return metrics.Config{Refused: true, RestartNeeded: 2, Limits: digest} })
		page := scrape(t, reg)
		shows(t, page, "oauth_config_limits_hash "+want+"\n")
		shows(t, page, "oauth_config_reload_failed 1\n")
		shows(t, page, "oauth_config_restart_needed 2\n")
	}
}

func TestTokenOutcomes(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{})
	m.Token("password", "")
	m.Token("refresh_token", metrics.RateLimited)
	m.Token("client_credentials", metrics.Overloaded)
	m.Token("no-such-grant", "unsupported_grant_type")
	page := scrape(t, reg)
	shows(t, page, `oauth_token_responses_total{error="none",grant_type="password"} 1`)
	shows(t, page, `oauth_token_responses_total{error="rate_limited",grant_type="refresh_token"} 1`)
	shows(t, page, `oauth_token_responses_total{error="overloaded",grant_type="client_credentials"} 1`)
	shows(t, page, `oauth_token_responses_total{error="unsupported_grant_type",grant_type="other"} 1`)
}

func TestExemplarsNameTheTrace(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{})
	m.Request(metrics.Request{Route: "/token", Method: "POST", Code: 200, TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"})
	shows(t, scrape(t, reg), `trace_id="4bf92f3577b34da6a3ce929d0e0e4736"`)
}

func TestRequestsInFlight(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{})
	leave := m.Enter()
	shows(t, scrape(t, reg), "oauth_http_requests_in_flight 1\n")
	leave()
	shows(t, scrape(t, reg), "oauth_http_requests_in_flight 0\n")
}

func TestASecondSetOnOneRegistryIsRefused(t *testing.T) {
	_, reg := newMetrics(t, metrics.Options{})
	if _, err := metrics.New(reg, metrics.Options{}); err == nil {
		t.Error("New() registers the same collectors twice")
	}
}

func TestAWarmClientIsCountedWithoutAllocation(t *testing.T) {
	m, _ := newMetrics(t, metrics.Options{MaxClients: 10})
	count := func() {
		m.Decision("shop", "client_credentials", ratelimit.Allowed)
		m.OutageDecision("shop", ratelimit.Allowed)
		m.SoftWarning("shop", "client_credentials")
		m.Usage("shop", 0.5)
		m.Token("client_credentials", "")
	}
	count()
	check.Equal(t, "allocations", testing.AllocsPerRun(100, count), 0)
}

// scrape returns the metrics page in OpenMetrics format.
func scrape(tb testing.TB, g prometheus.Gatherer) string {
	tb.Helper()
	server := httptest.NewServer(metrics.Handler(g))
	defer server.Close()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, server.URL, http.NoBody)
	check.OK(tb, err)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := server.Client().Do(req)
	check.OK(tb, err)
	defer func() { check.OK(tb, resp.Body.Close()) }()
	page, err := io.ReadAll(resp.Body)
	check.OK(tb, err)
	return strings.ReplaceAll(strings.ReplaceAll(string(page), ".0\n", "\n"), ".0 #", " #")
}
