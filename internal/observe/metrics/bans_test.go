package metrics_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/ratelimit"
)

// TestBans checks that decisions by bans, and new bans, are exported from 0 on for a client that
// can be banned, and otherwise once there are any.
func TestBans(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	ban := ratelimit.DefaultBan()
	settings := ratelimit.DefaultSettings()
	settings.Clients = map[string]ratelimit.Policy{"shop": {Ban: &ban}}
	snapshot := testworld.Policies(t, settings, clientcfg.PolicySet{})
	m.WatchPolicies(func() metrics.PolicySnapshot { return snapshot })
	m.WatchBans(func() metrics.Bans { return metrics.Bans{Active: 2, Longest: time.Hour, Waiting: 1} })
	for _, id := range []string{"shop", "app"} {
		m.Decision(id, "client_credentials", metrics.Allowed)
	}
	m.Decision("once", "client_credentials", metrics.WouldBan)
	m.BanBegan("shop", metrics.Banned)
	m.BanBegan("once", metrics.WouldBan)
	series := map[string]float64{}
	families, err := reg.Gather()
	check.OK(t, err)
	for _, f := range families {
		for _, s := range f.GetMetric() {
			name := f.GetName()
			for _, l := range s.GetLabel() {
				name += " " + l.GetValue()
			}
			series[name] = s.GetCounter().GetValue() + s.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"oauth_ratelimit_bans_total shop banned": 1, "oauth_ratelimit_bans_total shop would_ban": 0,
		"oauth_ratelimit_bans_total once would_ban": 1, "oauth_ratelimit_bans_total app banned": -1,
		"oauth_ratelimit_decisions_total shop client_credentials banned":    0,
		"oauth_ratelimit_decisions_total app client_credentials banned":     -1,
		"oauth_ratelimit_decisions_total once client_credentials would_ban": 1,
		"oauth_ratelimit_banned": 2, "oauth_ratelimit_ban_longest_seconds": 3600, "oauth_ratelimit_bans_waiting": 1,
	} {
		got, there := series[name]
		if there != (want >= 0) || there && got != want {
			t.Errorf("%s: %v, exported %v, want %v", name, got, there, want)
		}
	}
}
