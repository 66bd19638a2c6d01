package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/ratelimit"
)

// TestBans checks that decisions by bans, and new bans, are exported from 0 on for a client that
// can be banned, and otherwise once there are any.
func TestBans(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 10})
	ban := ratelimit.DefaultBan()
	policies := snapshotOf(map[string]ratelimit.Policy{"shop": {Ban: &ban}})
	m.WatchPolicies(func() metrics.PolicySnapshot { return policies })
	m.WatchBans(func() bans.Stats { return bans.Stats{Active: 2, Longest: time.Hour, Waiting: 1} })
	for _, id := range []string{"shop", "app"} {
		m.Decision(id, "client_credentials", ratelimit.Allowed)
	}
	m.Decision("once", "client_credentials", ratelimit.WouldBan)
	m.BanBegan("shop", ratelimit.Banned)
	m.BanBegan("once", ratelimit.WouldBan)
	page := scrape(t, reg)
	const decisions, bans = `oauth_ratelimit_decisions_total{client_id="%s",grant_type="client_credentials",outcome="%s"} `, `oauth_ratelimit_bans_total{client_id="%s",outcome="%s"} `
	showsLines(t, page,
		fmt.Sprintf(bans, "shop", "banned")+"1", fmt.Sprintf(bans, "shop", "would_ban")+"0", fmt.Sprintf(bans, "once", "would_ban")+"1",
		fmt.Sprintf(decisions, "shop", "banned")+"0", fmt.Sprintf(decisions, "once", "would_ban")+"1",
		"oauth_ratelimit_banned 2", "oauth_ratelimit_ban_longest_seconds 3600", "oauth_ratelimit_bans_waiting 1",
	)
	for _, absent := range []string{fmt.Sprintf(bans, "app", "banned"), fmt.Sprintf(decisions, "app", "banned")} {
		check.Equal(t, absent, strings.Contains(page, absent), false)
	}
}
