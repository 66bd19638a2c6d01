// Package dashboards defines the Grafana dashboards of the project in Go, so
// that their expressions can be tested like other code.
//
// [All] returns them; the files in dashboards/ are their JSON, which a test
// compares and `make dashboards` writes. The data source is a variable, so the
// same file can be imported by hand or provisioned. Each panel is one function call:
//
//	lines("Store errors", "Operations that the store failed to answer.", "ops",
//		query(`sum by (operation) (rate(oauth_store_errors_total{$i}[$__rate_interval]))`, "{{operation}}"))
//
// In expressions, $c stands for the selection of clients, grants and instances,
// $k for that of clients and instances, and $i for that of instances; the files
// hold the selections themselves.
package dashboards
