package dashboards

import "strings"

// Query is one query of a panel or annotation, in a form that can be run outside Grafana.
type Query struct {
	Panel   string // title
	RefID   string
	Legend  string
	Instant bool
	raw     string
}

// Changes returns the queries of the annotations. They have results only when something changed.
func (d Dashboard) Changes() []Query {
	all := make([]Query, 0, len(d.Annotations.List))
	for _, a := range d.Annotations.List {
		all = append(all, Query{Panel: a.Name, Legend: a.TitleFormat, raw: a.Expr})
	}
	return all
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

// Variables are the values of Grafana's variables in an expression. Job, Namespace, Instance,
// Client and Grant are regular expressions; the others are durations in PromQL's form.
type Variables struct {
	Job, Namespace, Instance  string
	Client, Grant             string
	Over, RateInterval, Range string
}

// Everything selects all clients, grants and instances, at a scrape interval of 5 s.
var Everything = Variables{
	Job: ".*", Namespace: ".*", Instance: ".*", Client: ".*", Grant: ".*",
	Over: "65s", RateInterval: "20s", Range: "5m",
}

// Expr returns the expression with the variables replaced, as Grafana does.
func (q Query) Expr(v Variables) string {
	return strings.NewReplacer(
		"$job", v.Job, "$namespace", v.Namespace, "$instance", v.Instance,
		"$client", v.Client, "$grant", v.Grant, "$over", v.Over,
		"$__rate_interval", v.RateInterval, "$__range", v.Range,
	).Replace(q.raw)
}
