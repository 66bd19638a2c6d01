// Package metrics counts what the server does and exports it to Prometheus.
//
// [Catalog] lists all exported metrics. The collectors and docs/metrics.md are built from it. A
// test compares the three and the dashboards. Events are counted by method calls
// ([Metrics.Decision], [Metrics.Request], …), which implement the observer interfaces of the
// calling packages. State (keys in memory, age of g) is read at each scrape, by the functions
// passed to [Metrics.WatchSync] and the other Watch methods.
//
// The number of series is bounded, whatever the traffic and the policies: at most
// [Options.MaxClients] clients have a label. Clients with a policy keep their labels. If there are
// too many of them, only the trusted ones do. The busiest clients get the remaining labels. All
// others are counted together as "other". Usernames, addresses, tokens and error texts are never
// labels: no method accepts one.
//
// The package runs no goroutine and does no I/O.
//
//	reg := prometheus.NewRegistry()
//	m, err := metrics.New(reg, metrics.Options{MaxClients: 200})
//	…
//	m.Decision("shop", "client_credentials", ratelimit.Denied)
//	// oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="denied"} 1
package metrics
