package overload

import (
	"fmt"

	"oauth-server/lab/chart"
)

// Picture writes the share of requests that succeed, by class, over the offered load, to a file.
func (r *Report) Picture(file string) error {
	var charts []*chart.Chart
	for _, control := range r.controls() {
		if c := r.successChart(control); len(c.Series) > 0 {
			charts = append(charts, c)
		}
	}
	return chart.Write(file, charts...)
}

var controlTitles = map[string]string{none: "without admission control", "enforce": "with admission control", "dry_run": "with admission control in dry-run"}

func (r *Report) successChart(control string) *chart.Chart {
	c := &chart.Chart{
		Title:    "Requests that succeed, " + controlTitles[control],
		Subtitle: fmt.Sprintf("by how much is offered, in capacities of %s requests a second; callers hang up after a second", number(r.Capacity)),
		X:        chart.Axis{Label: "offered load, × capacity", Scale: chart.Log},
		Y:        chart.Axis{Label: "%", Min: 0, Max: 105},
		Height:   180,
	}
	of := func(name string, success func(row *Row) float64) {
		s := chart.Series{Name: name, Dots: true}
		for i := range r.Rows {
			if row := &r.Rows[i]; row.Series == MixSeries && row.Control == control {
				s.Points = append(s.Points, chart.Point{X: row.Load, Y: 100 * success(row)})
			}
		}
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	of("refresh and code", func(row *Row) float64 { return row.Tokens.Success() })
	of("client_credentials", func(row *Row) float64 { return row.success(Client) })
	of("sign-in", func(row *Row) float64 { return row.success(SignIn) })
	return c
}
