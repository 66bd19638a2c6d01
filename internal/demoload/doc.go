// Package demoload runs the demonstration without Docker: a number of servers
// on one MongoDB, a Prometheus that scrapes them, and the cast of
// internal/traffic. What Prometheus then answers is drawn as the charts in
// docs/pictures, and checked against the panels of the dashboards in the test.
//
//	d, err := demoload.Start(ctx, demoload.Options{Dir: dir, Servers: 2, MongoDB: uri})
//	// …
//	defer d.Stop()
//	summary := d.Play(ctx, 1) // until ctx ends
//	series, err := d.Prometheus.Range(ctx, `up`, from, to, time.Second)
//
// It starts processes and so needs the go and prometheus commands. It is a tool;
// the server does not import it.
package demoload
