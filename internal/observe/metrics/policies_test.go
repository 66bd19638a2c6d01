package metrics_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/ratelimit"
)

// policies allows users 100 requests a minute by default, and 2 a second for both named clients.
func policies() metrics.PolicySnapshot {
	perSecond := ratelimit.Policy{User: []ratelimit.Limit{ratelimit.NewLimit("per-second", 2, time.Second)}}
	trusted := perSecond
	trusted.Trusted = true
	return snapshotOf(map[string]ratelimit.Policy{"mobile-app": trusted, "shop": perSecond})
}

// manyPolicies returns policies of n clients. Each allows its users two requests a second.
func manyPolicies(n int) func() metrics.PolicySnapshot {
	all := make(map[string]ratelimit.Policy, n)
	for i := range n {
		all["policy"+strconv.Itoa(i)] = ratelimit.Policy{User: []ratelimit.Limit{ratelimit.NewLimit("per-second", 2, time.Second)}}
	}
	s := snapshotOf(all)
	return func() metrics.PolicySnapshot { return s }
}

func snapshotOf(clients map[string]ratelimit.Policy) metrics.PolicySnapshot {
	s := ratelimit.DefaultSettings()
	s.Clients = clients
	return compiled(s)
}

func compiled(s ratelimit.Settings) metrics.PolicySnapshot {
	p, err := ratelimit.Compile(s)
	if err != nil {
		panic(err)
	}
	return &snapshot{p, s}
}

type snapshot struct {
	*ratelimit.Compiled
	settings ratelimit.Settings
}

func (s *snapshot) Settings() ratelimit.Settings { return s.settings }

func (s *snapshot) Clients(most int) (ids []string) {
	for id, p := range s.settings.Clients {
		if len(s.settings.Clients) <= most || p.Trusted {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// A client with a policy is exported before its first request. If there are more policies than
// labels, this holds for the trusted clients.
func TestClientsOfPoliciesHaveLabels(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{MaxClients: 2})
	current, trusted := policies(), ratelimit.Policy{Trusted: true}
	m.WatchPolicies(func() metrics.PolicySnapshot { return current })
	shows(t, scrape(t, reg), `oauth_ratelimit_decisions_total{client_id="shop",grant_type="password",outcome="denied"} 0`)
	current = snapshotOf(map[string]ratelimit.Policy{"app": {}, "shop": {}, "till": {}, "report": trusted})
	page := scrape(t, reg)
	shows(t, page, `oauth_ratelimit_decisions_total{client_id="report",grant_type="password",outcome="denied"} 0`)
	shows(t, page, "oauth_metrics_labelled_clients 2\n")
}
