package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/chart"
	"oauth-server/internal/simulate/algorithm"
)

// Compared is what algorithms did with the same traffic.
type Compared struct {
	Name    string // what tells it from others; empty if there is one
	Results []algorithm.Result
}

// Bounds of diagrams over time: of what is more there are none.
const (
	maxOverTime  = 4 // comparisons
	maxLines     = 7 // in one diagram, as many as there are colours
	maxIntervals = 1_000_000
)

// OverTime reports whether [WriteAlgorithms] draws series of so many algorithms in so many comparisons, of a time in
// such intervals.
func OverTime(comparisons, algorithms int, duration, interval time.Duration) bool {
	return comparisons <= maxOverTime && algorithms <= maxLines && duration/interval <= maxIntervals
}

// WriteAlgorithms writes charts of a comparison of algorithms to a file as [WriteCharts] does: which of their decisions
// were wrong, the highest spikes and, if all have series, requests and tokens over time. [OverTime] says whether series
// are worth having.
func WriteAlgorithms(path, interval string, all []Compared) error {
	bars := []*chart.Chart{
		ofEach(all, "Wrong decisions", "by the exact log of what each algorithm has itself admitted", "% of requests",
			func(r *algorithm.Result) (float64, bool) {
				return 100 * r.WrongRatio(), r.Algorithm != algorithm.Unlimited
			}),
		ofEach(all, "Spikes", "the most tokens of all clients in any "+interval, "tokens in "+interval,
			func(r *algorithm.Result) (float64, bool) { return float64(r.Spike.Tokens), !r.Sampled }),
	}
	charts := slices.DeleteFunc(bars, func(c *chart.Chart) bool { return len(c.Series) == 0 })
	return chart.Write(path, append(charts, flows(all, interval)...)...)
}

// ofEach draws a value of each algorithm, which has one or not, as bars: of several comparisons beside each other.
func ofEach(all []Compared, title, subtitle, unit string, value func(r *algorithm.Result) (float64, bool)) *chart.Chart {
	c := &chart.Chart{Title: title, Subtitle: subtitle, Y: chart.Axis{Label: unit}}
	var names []string
	for _, one := range all {
		s := chart.Series{Name: one.Name, Kind: chart.Bar}
		for i := range one.Results {
			r := &one.Results[i]
			y, has := value(r)
			if !has {
				continue
			}
			if !slices.Contains(names, r.Algorithm) {
				names = append(names, r.Algorithm)
			}
			s.Points = append(s.Points, chart.Point{X: float64(slices.Index(names, r.Algorithm)), Y: y})
		}
		if len(s.Points) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	for _, name := range names {
		c.X.Names = append(c.X.Names, strings.Replace(name, "-", "\n", 1))
	}
	return c
}

// flows draws the requests and the tokens of each comparison over time, if there are series.
func flows(all []Compared, interval string) (charts []*chart.Chart) {
	for _, one := range all {
		requests, tokens := flow("Requests", one.Name, interval), flow("Tokens", one.Name, interval)
		for i := range one.Results {
			r := &one.Results[i]
			if r.Series == nil || r.Sampled {
				return nil
			}
			requests.Series = append(requests.Series, chart.Series{Name: r.Algorithm, Step: true, Points: most(r.Series.Requests, r.Series.Seconds)})
			tokens.Series = append(tokens.Series, chart.Series{Name: r.Algorithm, Step: true, Points: most(r.Series.Tokens, r.Series.Seconds)})
		}
		charts = append(charts, requests, tokens)
	}
	return charts
}

func flow(of, name, interval string) *chart.Chart {
	return &chart.Chart{
		Title: strings.TrimSuffix(of+", "+name, ", "), X: chart.Axis{Label: "minutes"},
		Y: chart.Axis{Label: fmt.Sprintf("%s in %s, at most", strings.ToLower(of), interval)}, Height: 150,
	}
}

// most returns the highest of the counts of intervals in each of at most maxParts parts of the time.
func most(counts []int64, seconds float64) (points []chart.Point) {
	n := max(1, (len(counts)+maxParts-1)/maxParts)
	for i := 0; i < len(counts); i += n {
		points = append(points, chart.Point{X: float64(i) * seconds / 60, Y: float64(slices.Max(counts[i:min(i+n, len(counts))]))})
	}
	return points
}
