// Package dashboards draws the Grafana dashboards of the project, so that
// their expressions can be tested like other code.
//
// [All] returns them; the files in dashboards/ are their JSON, which a test
// compares and `make dashboards` writes. They hold no data source of their own
// but a variable for it, so the same file can be imported by hand and be
// provisioned. Each panel is one function call:
//
//	lines("Store errors", "Operations that the store could not answer.", "ops",
//		query(`sum by (operation) (rate(oauth_store_errors_total{$i}[$__rate_interval]))`, "{{operation}}"))
//
// In expressions, $c stands for the selection of clients, grants and instances
// and $i for that of instances; they are written out in the files.
//
// The package serves tests and the generator only; the server does not import it.
package dashboards
