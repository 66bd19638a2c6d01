package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oauth-server/lab/chart"
	"oauth-server/lab/dashboards"
	"oauth-server/lab/traffic"
)

// picture is charts of panels of the dashboard of rate limits, one above the other, and the file
// to draw them to.
type picture struct {
	file   string
	charts []view
}

// view is a chart of one panel.
type view struct {
	panel, title, subtitle string
	job                    string
	clients                string // regular expression
	solid                  bool   // clients that are never denied are drawn as the others
}

// pictures returns the two charts of Allegro's article, and what limits do to spikes.
func pictures() []picture {
	const all, spiky = ".*", "batch-job|integrator"
	return []picture{
		{"ratelimit-denied-rate.svg", []view{{
			panel: "Ratelimit Denied Rate", title: "Ratelimit Denied Rate", job: limitedJob, clients: all,
			subtitle: "requests answered with 429, by client",
		}}},
		{"ratelimit-allowed-rate.svg", []view{{
			panel: "Ratelimit Allowed Rate", title: "Ratelimit Allowed Rate", job: limitedJob, clients: all,
			subtitle: "admitted requests, and limits; dotted: clients that are never denied",
		}}},
		{"ratelimit-spikes.svg", []view{{
			panel: "Ratelimit Allowed Rate", title: "Without limits", job: unlimitedJob, clients: spiky, solid: true,
			subtitle: "two clients; dry-run admits all their requests",
		}, {
			panel: "Ratelimit Allowed Rate", title: "With limits", job: limitedJob, clients: spiky,
			subtitle: "the same traffic: admitted requests",
		}}},
	}
}

// rateOver is the range of the rates that are drawn: the window of the limits in the demonstration,
// and a scrape more, so that the first and the last scrape in it are a window apart. A rate over
// less would draw a client that uses up its limit at once above it.
const rateOver = 10*time.Second + scrapeEvery

// variables are the values of the dashboards' variables.
var variables = func() dashboards.Variables {
	v := dashboards.Everything
	v.Job, v.Over, v.RateInterval = limitedJob+"|"+gatewayJob, milliseconds(rateOver), milliseconds(rateOver)
	return v
}()

// milliseconds is a duration in PromQL, which has no fractions.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// step is the time between two points, and longestGap that between two that are joined.
const (
	step       = 500 * time.Millisecond
	longestGap = 3 * time.Second
)

// draw draws the picture from the results of the queries of its panels.
func (p *prometheus) draw(ctx context.Context, pic picture, from, to time.Time) error {
	charts := make([]*chart.Chart, 0, len(pic.charts))
	for _, v := range pic.charts {
		c, err := p.chart(ctx, v, from, to)
		if err != nil {
			return err
		}
		charts = append(charts, c)
	}
	return chart.Write(pic.file, charts...)
}

func (p *prometheus) chart(ctx context.Context, v view, from, to time.Time) (*chart.Chart, error) {
	c := &chart.Chart{
		Title: v.title, Subtitle: v.subtitle,
		X: chart.Axis{Kind: chart.Time, Min: chart.Seconds(from), Max: chart.Seconds(to)},
		Y: chart.Axis{Label: "requests/s"},
	}
	values := variables
	values.Job, values.Client, values.Range = v.job, v.clients, to.Sub(from).Round(time.Second).String()
	for _, q := range dashboards.All()["ratelimits.json"].Queries() {
		if q.Panel != v.panel {
			continue
		}
		found, err := p.span(ctx, q.Expr(values), from, to, step)
		if err != nil {
			return nil, err
		}
		lines := linesOf(q.Legend, found)
		for i := range lines {
			if lines[i].Dashes == chart.Dotted && v.solid {
				lines[i].Dashes = ""
			}
			if lines[i].Dashes != chart.Dashed {
				lines[i].Points = fromZero(lines[i].Points, from)
				lines[i].Gap = longestGap.Seconds()
			}
		}
		c.Series = append(c.Series, lines...)
	}
	return c, nil
}

// fromZero adds what Prometheus cannot know: a client without a series has sent nothing yet.
func fromZero(points []chart.Point, from time.Time) []chart.Point {
	if len(points) == 0 {
		return points
	}
	var before []chart.Point
	for at := from; chart.Seconds(at) < points[0].X; at = at.Add(step) {
		before = append(before, chart.At(at, 0))
	}
	return append(before, points...)
}

// colorOf returns the colour of a client, the same in every picture; "" for other series.
func colorOf(client string) string {
	i := slices.IndexFunc(traffic.DemoClients(), func(c traffic.Client) bool { return c.ID == client })
	if i < 0 {
		return ""
	}
	return chart.Palette(i)
}

// neverDenied matches the legends of clients that the dashboard draws dotted.
var neverDenied = regexp.MustCompile(`\((trusted|dry_run|off)\)$`)

// linesOf returns a line for each series, named by the legend, sorted by name. Limits are dashed, and clients that are
// never denied are dotted.
func linesOf(legend string, all model.Matrix) []chart.Series {
	lines := make([]chart.Series, 0, len(all))
	for _, s := range all {
		name := legend
		for label, value := range s.Metric {
			name = strings.ReplaceAll(name, "{{"+string(label)+"}}", string(value))
		}
		line := chart.Series{Name: name, Color: colorOf(string(s.Metric["client_id"]))}
		for _, v := range s.Values {
			line.Points = append(line.Points, chart.At(v.Timestamp.Time(), float64(v.Value)))
		}
		switch {
		case strings.Contains(name, "limit "):
			line.Dashes = chart.Dashed
		case neverDenied.MatchString(name):
			line.Dashes = chart.Dotted
		}
		if strings.HasPrefix(name, "default limit") {
			line.Color = chart.Red
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b chart.Series) int { return cmp.Compare(a.Name, b.Name) })
	return lines
}
