package app

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/internal/limiter"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/ratelimit"
)

// limited returns a server that allows two client_credentials tokens an hour.
func limited(t *testing.T, change func(*config.RateLimit)) *config.Config {
	t.Helper()
	cfg := withOperators(t)
	l := &cfg.RateLimit.Default.Client[0]
	l.Name, l.Requests, l.Window = "per-hour", 2, time.Hour
	if change != nil {
		change(&cfg.RateLimit)
	}
	return cfg
}

// TestDecisionsAreCounted checks that decisions in an outage are also counted by themselves, decisions
// while the mode is off are not counted, and soft warnings are counted only for a request that the
// limit admits, and not for one that gets its last token again.
func TestDecisionsAreCounted(t *testing.T) {
	tm, err := newTelemetry(t.Context(), config.Default(), slog.New(slog.DiscardHandler))
	check.OK(t, err)
	for _, d := range []ratelimit.Decision{
		{Outcome: ratelimit.Allowed},
		{Outcome: ratelimit.Allowed, Outage: true},
		{Outcome: ratelimit.Denied},
		{Outcome: ratelimit.Denied, Outage: true},
		{Outcome: ratelimit.Denied, Outage: true},
		{Outcome: ratelimit.WouldDeny, Outage: true},
		{Outcome: ratelimit.Trusted},
		{Outcome: ratelimit.Passed}, // the mode is off
	} {
		tm.decided(t.Context(), limiter.Decided{ClientID: "shop", Grant: "client_credentials", Decision: d})
	}
	for _, d := range []ratelimit.Decision{{Outcome: ratelimit.Allowed}, {Outcome: ratelimit.Reused}} {
		tm.decided(t.Context(), limiter.Decided{ClientID: "batch", Grant: "client_credentials", Decision: d, Leased: 20 * time.Millisecond})
	}
	for _, outcome := range []ratelimit.Outcome{
		ratelimit.Allowed, ratelimit.Denied, ratelimit.Reused, ratelimit.WouldDeny, ratelimit.WouldReuse,
	} {
		d := ratelimit.Decision{Outcome: outcome, Soft: true}
		tm.decided(t.Context(), limiter.Decided{ClientID: "web", Grant: "client_credentials", Decision: d})
	}
	page := httptest.NewRecorder()
	metrics.Handler(tm.registry).ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, want := range []string{
		`oauth_ratelimit_lease_wait_seconds_count{outcome="allowed"} 1`,
		`oauth_ratelimit_lease_wait_seconds_count{outcome="denied"} 1`,
		`oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="allowed"} 2`,
		`oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="denied"} 3`,
		`oauth_ratelimit_outage_decisions_total{client_id="shop",outcome="allowed"} 1`,
		`oauth_ratelimit_outage_decisions_total{client_id="shop",outcome="denied"} 2`,
		`oauth_ratelimit_outage_decisions_total{client_id="shop",outcome="would_deny"} 1`,
		`oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="trusted"} 1`,
		`oauth_ratelimit_soft_warnings_total{client_id="web",grant_type="client_credentials"} 3`,
	} {
		if !strings.Contains(page.Body.String(), want+"\n") {
			t.Errorf("the page lacks %s", want)
		}
	}
	check.Equal(t, "off is counted", strings.Contains(page.Body.String(), `outcome="passed"`), false)
}

func TestFailedAttemptsOfTheConfigurationApply(t *testing.T) {
	cfg := testConfig(t)
	cfg.FailedAttempts.Clients.PerName = 2
	r := start(t, cfg, io.Discard)
	r.secret = "wrong"
	client := newClient(t, nil)
	for i, want := range []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusTooManyRequests} {
		check.Equal(t, fmt.Sprint("status of failure ", i+1), r.token(t, client).StatusCode, want)
	}
	client.CloseIdleConnections()
}

// The counts survive a restart of the same server, too.
func TestCountsOutliveARestart(t *testing.T) {
	cfg := limited(t, nil)
	first := start(t, cfg, io.Discard)
	client := newClient(t, nil)
	for range 2 {
		check.Equal(t, "status", first.token(t, client).StatusCode, http.StatusOK)
	}
	client.CloseIdleConnections()
	check.OK(t, first.stop())
	second := resume(t, cfg, first.secret)
	// Requests pass until the first of them has caused a read of the counts.
	denied := func() bool { return second.token(t, client).StatusCode == http.StatusTooManyRequests }
	for range 100 {
		if denied() {
			client.CloseIdleConnections()
			return
		}
	}
	t.Error("the counts of before are forgotten")
}

func TestCodesThatExpireBeforeTheLimitLetsThemPassAreWarnedOf(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*config.Config)
		want   []string // in the log
	}{
		"nothing": {func(*config.Config) {}, nil},
		"the default": {
			func(c *config.Config) { c.Tokens.CodeTTL = config.Duration(time.Minute) },
			[]string{"client_id=(default) limit=per-minute window=1m0s code_ttl=1m0s"},
		},
		"a client": {func(c *config.Config) {
			hourly := config.Default().RateLimit.Default.User
			hourly[0].Name, hourly[0].Window = "per-hour", time.Hour
			c.RateLimit.Clients = map[string]ratelimit.Policy{"shop": {User: hourly}}
		}, []string{"client_id=shop limit=per-hour window=1h0m0s code_ttl=5m0s"}},
		"limits for some grants, and from each address": {func(c *config.Config) {
			hourly := func(name string, of ratelimit.Grants) ratelimit.Limit {
				l := ratelimit.NewLimit(name, 9, time.Hour)
				l.Grants = of
				return l
			}
			c.RateLimit.Clients = map[string]ratelimit.Policy{"shop": {
				User:   []ratelimit.Limit{hourly("refreshes", ratelimit.GrantRefresh), hourly("codes", ratelimit.GrantCode|ratelimit.GrantRefresh)},
				Source: []ratelimit.Limit{hourly("per-address", 0)},
			}}
		}, []string{"client_id=shop limit=codes window=1h0m0s", "client_id=shop limit=per-address window=1h0m0s"}},
		"a trusted client": {func(c *config.Config) {
			hourly := config.Default().RateLimit.Default.User
			hourly[0].Window = time.Hour
			c.RateLimit.Clients = map[string]ratelimit.Policy{"shop": {User: hourly, Trusted: true}}
		}, nil},
		"a judge, which issues no codes": {func(c *config.Config) {
			c.Tokens.CodeTTL, c.Gateway.Judge = config.Duration(time.Minute), true
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			cfg := testConfig(t)
			tt.change(cfg)
			check.OK(t, start(t, cfg, &log).stop())
			for _, want := range tt.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q:\n%s", want, log.String())
				}
			}
			check.Equal(t, "warnings", strings.Count(log.String(), "level=WARN"), len(tt.want))
		})
	}
}
