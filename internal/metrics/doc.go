// Package metrics counts what the server does and exports it to Prometheus.
//
// All exported metrics are listed in one place, [Catalog], from which the collectors are
// built and docs/metrics.md is written; a test compares the three and the dashboards.
// Events are counted by method calls ([Metrics.Decision], [Metrics.Request], …), which
// implement the observer interfaces of the calling packages. State (keys in memory, age
// of g) is read at each scrape, by the functions given to [Metrics.WatchSync] and the
// other Watch methods.
//
// The number of series is bounded, whatever the traffic and the policies: at most
// [Options.MaxClients] clients have a label. Those with a policy keep theirs, or, if they
// are more than that, those of them that are trusted; the busiest have the rest. All others
// are counted together as "other". Usernames, addresses, tokens and error texts are never
// labels: no method takes one.
//
// The package runs no goroutine and does no I/O.
//
//	reg := prometheus.NewRegistry()
//	m, err := metrics.New(reg, metrics.Options{MaxClients: 200})
//	…
//	m.Decision("shop", "client_credentials", metrics.Denied)
//	// oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="denied"} 1
package metrics
