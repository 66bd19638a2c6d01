package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image/color"
	"os"
	"slices"
	"strings"
	"time"

	"oauth-server/tools/chart"
	"oauth-server/tools/dashboards"
	"oauth-server/tools/traffic"
)

// picture is a chart of one panel of a dashboard, and the file to draw it to.
type picture struct {
	dashboard, panel string
	subtitle         string
	file             string
}

// pictures returns the two charts of Allegro's article.
func pictures() []picture {
	return []picture{
		{"ratelimits.json", "Ratelimit Denied Rate", "requests answered with 429, by client", "ratelimit-denied-rate.png"},
		{"ratelimits.json", "Ratelimit Allowed Rate", "requests let through, by client, and the limits", "ratelimit-allowed-rate.png"},
	}
}

// variables are the values of the dashboards' variables. Grafana would choose a shorter rate
// interval; this is the window of the limits in the demonstration.
var variables = func() dashboards.Variables {
	v := dashboards.Everything
	v.RateInterval = (10 * scrapeEvery).String()
	return v
}()

// draw draws the picture from the results of the queries of its panel.
func (p *prometheus) draw(ctx context.Context, pic picture, from, to time.Time) error {
	c := &chart.Chart{
		Title: pic.panel, Subtitle: pic.subtitle, Unit: "requests/s",
		From: from, To: to, Gap: 3 * scrapeEvery,
	}
	for _, q := range dashboards.All()[pic.dashboard].Queries() {
		if q.Panel != pic.panel {
			continue
		}
		found, err := p.span(ctx, q.Expr(variables), from, to, scrapeEvery)
		if err != nil {
			return err
		}
		c.Lines = append(c.Lines, linesOf(q.Legend, found)...)
	}
	f, err := os.Create(pic.file)
	if err != nil {
		return err
	}
	return errors.Join(c.PNG(f), f.Close())
}

// colorOf returns the colour of a client, the same in every picture; nil for other series.
func colorOf(client string) color.Color {
	i := slices.IndexFunc(traffic.DemoClients(), func(c traffic.Client) bool { return c.ID == client })
	if i < 0 {
		return nil
	}
	return chart.PaletteColor(i)
}

// linesOf returns a line for each series, named by the legend, sorted by name.
func linesOf(legend string, all []series) []chart.Line {
	lines := make([]chart.Line, 0, len(all))
	for _, s := range all {
		name := legend
		for label, value := range s.labels {
			name = strings.ReplaceAll(name, "{{"+label+"}}", value)
		}
		line := chart.Line{
			Name: name, Points: s.points, Limit: strings.Contains(name, "limit "), Color: colorOf(s.labels["client_id"]),
		}
		if strings.HasPrefix(name, "default limit") {
			line.Color = chart.LimitColor
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b chart.Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines
}

// empty returns the queries of panels for which Prometheus has no data.
func (p *prometheus) empty(ctx context.Context) ([]string, error) {
	var names []string
	for name, d := range dashboards.All() {
		for _, q := range d.Queries() {
			found, err := p.now(ctx, q.Expr(variables))
			if err != nil {
				return nil, err
			}
			if !hasNumber(found) {
				names = append(names, fmt.Sprintf("%s: %s %s", name, q.Panel, q.RefID))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// hasNumber reports whether there is a value that is not NaN.
func hasNumber(all []series) bool {
	return slices.ContainsFunc(all, func(s series) bool {
		return slices.ContainsFunc(s.points, func(p chart.Point) bool { return p.Value == p.Value })
	})
}
