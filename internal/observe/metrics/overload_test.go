package metrics_test

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/metrics"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
	"oauth-server/internal/ratelimit"
)

func overloaded() overload.Stats {
	st := overload.Stats{
		Mode: ratelimit.DryRun, Wait: 25 * time.Millisecond, Refused: 0.25, UpTo: ratelimit.SheddablePlus,
		Useless: 1500 * time.Millisecond, InFlight: 7,
	}
	st.Requests[overload.ClientCredentials][overload.Shed] = 3
	st.Requests[overload.SignIn][overload.WouldShed] = 4
	return st
}

func storeQueue() storequeue.Stats {
	st := storequeue.Stats{Limit: 16, InFlight: 15, Queued: 3}
	st.Calls[0] = [overload.Outcomes]uint64{overload.Shed: 9, overload.Abandoned: 1}
	st.Calls[overload.Criticalities-1][overload.Admitted] = 8
	return st
}

func TestOverload(t *testing.T) {
	m, reg := newMetrics(t, metrics.Options{})
	m.WatchOverload(overloaded)
	m.WatchStoreQueue(storeQueue)
	page := scrape(t, reg)
	showsLines(t, page,
		`oauth_overload_requests_total{class="client_credentials",outcome="shed"} 3`,
		`oauth_overload_requests_total{class="sign_in",outcome="would_shed"} 4`,
		`oauth_overload_requests_total{class="refresh_token",outcome="admitted"} 0`,
		`oauth_overload_mode{mode="dry_run"} 1`,
		`oauth_overload_mode{mode="enforce"} 0`,
		`oauth_overload_wait_seconds 0.025`,
		`oauth_overload_refused_ratio 0.25`,
		`oauth_overload_refused_criticality 2`,
		`oauth_overload_useless_seconds 1.5`,
		`oauth_overload_in_flight 7`,
		`oauth_store_queue_limit 16`,
		`oauth_store_queue_in_flight 15`,
		`oauth_store_queue_waiting 3`,
		`oauth_store_queue_requests_total{criticality="sheddable",outcome="shed"} 9`,
		`oauth_store_queue_requests_total{criticality="sheddable",outcome="abandoned"} 1`,
		`oauth_store_queue_requests_total{criticality="critical_plus",outcome="admitted"} 8`,
		`oauth_store_queue_requests_total{criticality="sheddable_plus",outcome="would_shed"} 0`,
	)
	check.Equal(t, "series of calls", strings.Count(page, "\noauth_store_queue_requests_total{"), overload.Criticalities*overload.Outcomes)
	check.Equal(t, "series of requests", strings.Count(page, "\noauth_overload_requests_total{"), overload.Classes*overload.Outcomes)
}
