package dashboards

import "strings"

// Query is one query of a panel, in a form that can be run outside Grafana.
type Query struct {
	Panel   string // title
	RefID   string
	Legend  string
	Instant bool
	raw     string
}

// Queries returns the queries of all panels.
func (d Dashboard) Queries() []Query {
	var all []Query
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, Query{Panel: p.Title, RefID: t.RefID, Legend: t.LegendFormat, Instant: t.Instant, raw: t.Expr})
		}
	}
	return all
}

// Variables are the values of Grafana's variables in an expression. Client, Grant
// and Instance are regular expressions; the others are durations in PromQL's form.
type Variables struct {
	Client, Grant, Instance string
	RateInterval, Range     string
}

// Everything selects all clients, grants and instances, at a scrape interval of 5 s.
var Everything = Variables{Client: ".*", Grant: ".*", Instance: ".*", RateInterval: "20s", Range: "5m"}

// Expr returns the expression with the variables replaced, as Grafana does.
func (q Query) Expr(v Variables) string {
	return strings.NewReplacer(
		"$client", v.Client, "$grant", v.Grant, "$instance", v.Instance,
		"$__rate_interval", v.RateInterval, "$__range", v.Range,
	).Replace(q.raw)
}
