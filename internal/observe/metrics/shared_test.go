package metrics_test

import (
	"testing"
	"time"

	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/ratelimit"
)

// TestGrantsAndSources checks that total and source limits have their own kind, and that limits for
// some grants name them.
func TestGrantsAndSources(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	renewals := ratelimit.NewLimit("renewals", 10, 10*time.Minute)
	renewals.Grants = ratelimit.GrantRefresh | ratelimit.GrantPassword
	s := ratelimit.DefaultSettings()
	s.Default.Source = []ratelimit.Limit{ratelimit.NewLimit("per-address", 200, time.Minute)}
	s.Clients = map[string]ratelimit.Policy{"shop": {User: []ratelimit.Limit{renewals}, Total: []ratelimit.Limit{ratelimit.NewLimit("all", 500, time.Minute)}}}
	p := compiled(s)
	m.WatchPolicies(func() metrics.PolicySnapshot { return p })
	page := scrape(t, reg)
	showsLines(t, page,
		`oauth_ratelimit_limit{client_id="shop",grants="refresh_token+password",kind="user",limit="renewals"} 10`,
		`oauth_ratelimit_limit_window_seconds{client_id="shop",grants="refresh_token+password",kind="user",limit="renewals"} 600`,
		`oauth_ratelimit_limit{client_id="shop",grants="",kind="total",limit="all"} 500`,
		`oauth_ratelimit_limit{client_id="shop",grants="",kind="source",limit="per-address"} 200`,
		`oauth_ratelimit_default_limit{grants="",kind="source",limit="per-address"} 200`,
	)
}

func gatewayStats() gateway.Stats {
	return gateway.Stats{
		Requests: [gateway.Outcomes]uint64{gateway.Issued: 5}, Unknown: map[subject.Reason]uint64{subject.NoJWT: 1}, Late: 2, UnderWay: 3, Subjects: 4,
	}
}

func sharedStats() sharing.Stats { return sharing.Stats{Found: 6, Stored: 7, Waiting: 8} }
