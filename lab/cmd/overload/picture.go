package main

import (
	"fmt"

	"oauth-server/lab/chart"
	"oauth-server/lab/page"
)

// draw writes the share of requests that succeed, by class, over the offered load, to a file.
func (r *report) draw(file string) error {
	var charts []*chart.Chart
	for _, control := range r.controls() {
		if c := r.successChart(control); len(c.Series) > 0 {
			charts = append(charts, c)
		}
	}
	return chart.Write(file, charts...)
}

var controlTitles = map[string]string{none: "without overload control", "enforce": "with overload control", "dry_run": "with overload control in dry-run"}

func (r *report) successChart(control string) *chart.Chart {
	c := &chart.Chart{
		Title:    "Successful requests, " + controlTitles[control],
		Subtitle: fmt.Sprintf("capacity: %s requests per second; callers hang up after 1 s", page.Number(r.capacity)),
		X:        chart.Axis{Label: "offered load, × capacity", Scale: chart.Log},
		Y:        chart.Axis{Label: "%", Min: 0, Max: 105},
		Height:   180,
	}
	of := func(name string, success func(row *row) float64) {
		s := chart.Series{Name: name, Dots: true}
		for i := range r.rows {
			if row := &r.rows[i]; row.series == mixSeries && row.control == control {
				s.Points = append(s.Points, chart.Point{X: row.load, Y: 100 * success(row)})
			}
		}
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	of("refresh and code", func(row *row) float64 { return row.tokens.success() })
	of("client_credentials", func(row *row) float64 { return row.success(clientOnly) })
	of("sign-in", func(row *row) float64 { return row.success(signIn) })
	return c
}
