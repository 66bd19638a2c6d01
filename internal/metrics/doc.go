// Package metrics counts what operators look at and shows it to Prometheus.
//
// Everything it exports is listed in one place ([Catalog]) from which the
// collectors are built and docs/metrics.md is written; a test compares the three and
// the dashboards. What the server does is told by plain method calls
// ([Metrics.Decision], [Metrics.Request], …) that satisfy the small observer
// interfaces of the packages that call them; what the server is like at this
// moment (keys in memory, age of g) is asked for at each scrape through the
// functions given to [Metrics.WatchSync] and its kin.
//
// The number of series is bounded, whatever the traffic: clients are named on
// labels up to [Options.MaxClients], those named by a policy first and then the
// busiest; all others are counted together as "other". Usernames, addresses,
// tokens and error texts are never labels: no method here takes one.
//
// The package runs no goroutine and does no I/O.
//
//	reg := prometheus.NewRegistry()
//	m, err := metrics.New(reg, metrics.Options{MaxClients: 200})
//	…
//	m.Decision("shop", "client_credentials", metrics.Denied)
//	// oauth_ratelimit_decisions_total{client_id="shop",grant_type="client_credentials",outcome="denied"} 1
package metrics
