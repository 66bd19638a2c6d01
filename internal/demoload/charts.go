package demoload

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

	"oauth-server/internal/chart"
	"oauth-server/internal/dashboards"
	"oauth-server/internal/traffic"
)

// Picture is a panel of a dashboard as it is drawn.
type Picture struct {
	Dashboard, Panel string
	Subtitle         string
	File             string
}

// Pictures are the two charts of Allegro's article.
func Pictures() []Picture {
	return []Picture{
		{"ratelimits.json", "Ratelimit Denied Rate", "requests answered with 429, by client", "ratelimit-denied-rate.png"},
		{"ratelimits.json", "Ratelimit Allowed Rate", "requests let through, by client, and the limits", "ratelimit-allowed-rate.png"},
	}
}

// variables are what Grafana would fill in at this scrape interval.
var variables = func() dashboards.Variables {
	v := dashboards.Everything
	v.RateInterval = (10 * scrapeEvery).String() // the window of the limits in the demonstration
	return v
}()

// Draw draws the panel from what Prometheus answers to its queries.
func (p *Prometheus) Draw(ctx context.Context, picture Picture, from, to time.Time) error {
	c := &chart.Chart{
		Title: picture.Panel, Subtitle: picture.Subtitle, Unit: "requests/s",
		From: from, To: to, Gap: 3 * scrapeEvery,
	}
	for _, q := range dashboards.All()[picture.Dashboard].Queries() {
		if q.Panel != picture.Panel {
			continue
		}
		series, err := p.Range(ctx, q.Expr(variables), from, to, scrapeEvery)
		if err != nil {
			return err
		}
		c.Lines = append(c.Lines, linesOf(q.Legend, series)...)
	}
	f, err := os.Create(picture.File)
	if err != nil {
		return err
	}
	return errors.Join(c.PNG(f), f.Close())
}

// colorOf gives a client the same colour in every picture.
func colorOf(client string) color.Color {
	cast := traffic.Cast()
	i := slices.IndexFunc(cast, func(m traffic.Member) bool { return m.ID == client })
	if i < 0 {
		return nil
	}
	return chart.PaletteColor(i)
}

// linesOf names each series as the legend says, in the order of the names.
func linesOf(legend string, series []Series) []chart.Line {
	lines := make([]chart.Line, 0, len(series))
	for _, s := range series {
		name := legend
		for label, value := range s.Labels {
			name = strings.ReplaceAll(name, "{{"+label+"}}", value)
		}
		line := chart.Line{
			Name: name, Points: s.Points, Limit: strings.Contains(name, "limit "), Color: colorOf(s.Labels["client_id"]),
		}
		if strings.HasPrefix(name, "default limit") {
			line.Color = chart.LimitColor
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b chart.Line) int { return cmp.Compare(a.Name, b.Name) })
	return lines
}

// Empty returns the panels for which Prometheus has no data.
func (p *Prometheus) Empty(ctx context.Context) ([]string, error) {
	var empty []string
	for name, d := range dashboards.All() {
		for _, q := range d.Queries() {
			series, err := p.Now(ctx, q.Expr(variables))
			if err != nil {
				return nil, err
			}
			if !hasNumber(series) {
				empty = append(empty, fmt.Sprintf("%s: %s %s", name, q.Panel, q.RefID))
			}
		}
	}
	slices.Sort(empty)
	return empty, nil
}

// hasNumber reports whether there is a value that a panel would show.
func hasNumber(series []Series) bool {
	return slices.ContainsFunc(series, func(s Series) bool {
		return slices.ContainsFunc(s.Points, func(p chart.Point) bool { return p.Value == p.Value })
	})
}
