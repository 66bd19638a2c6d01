package accuracy

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/lab/algorithm"
	"oauth-server/lab/chart"
	"oauth-server/lab/page"
	"oauth-server/lab/workload"
)

// The charts, below the root.
const (
	loadChart   = "docs/pictures/accuracy-load.svg"
	criteoChart = "docs/pictures/accuracy-criteo.svg"
	spikesChart = "docs/pictures/accuracy-spikes.svg"
)

// bar is what the share of wrong decisions is to be, in percent.
const bar = 0.01

// drawLoads draws the share of wrong decisions by load, from the tables.
func drawLoads(t *testing.T) {
	t.Helper()
	c := chart.Chart{
		Title: "Wrong decisions by load", Subtitle: "Poisson traffic, all requests counted; wrong: estimate and exact count are on different sides of the limit",
		X: chart.Axis{Label: "load ÷ limit", Min: 0.6, Max: 1.4}, Y: chart.Axis{Label: "% of requests", Kind: chart.Log, Min: 0.001, Max: 100},
	}
	for _, from := range []struct{ section, limit string }{{"load-100", "100"}, {"load-1000", "1000"}} {
		tables := page.Parse(read(t, from.section))
		for _, name := range frames(1, 2) {
			s := chart.Series{Name: name + ", " + from.limit + " per minute", Dots: true}
			for _, x := range loads {
				cell, err := tables.Cell("", "WRONG", timesLimit(x), name)
				check.OK(t, err)
				y, err := page.Figure(cell)
				check.OK(t, err)
				s.Points = append(s.Points, chart.Point{X: x, Y: y})
			}
			c.Series = append(c.Series, s)
		}
	}
	c.Series = append(c.Series, chart.Series{Name: fmt.Sprintf("%v %%", bar), Points: []chart.Point{{X: 0.6, Y: bar}, {X: 1.4, Y: bar}}, Dashes: chart.Dashed, Color: chart.Red})
	check.OK(t, c.Write(filepath.Join(root, loadChart)))
}

// over returns a series over time, from the values of intervals: of counts at their start, of the state at their end.
func over[T int64 | float64](values []T, seconds float64, state bool) (points []chart.Point) {
	at := chart.Seconds(workload.Start)
	if state {
		at += seconds
	}
	for _, v := range values {
		points = append(points, chart.Point{X: at, Y: float64(v)})
		at += seconds
	}
	return points
}

// between returns the points of some minutes.
func between(points []chart.Point, from, to time.Duration) (some []chart.Point) {
	start := chart.Seconds(workload.Start)
	for _, at := range points {
		if at.X >= start+from.Seconds() && at.X <= start+to.Seconds() {
			some = append(some, at)
		}
	}
	return some
}

// drawCriteo draws estimates and the exact count, as in Criteo's article.
func drawCriteo(t *testing.T) {
	t.Helper()
	s := study{traffic: workload.Wander, algorithms: append([]string{algorithm.Fixed}, frames(1, 4)...), duration: 20 * time.Minute}
	all := s.run(t, true)
	titles := []string{"Fixed window of 60 s", "Sliding window, 1 frame of 60 s", "Sliding window, 4 frames of 15 s"}
	var charts []*chart.Chart
	for i, r := range all[0].results {
		exact := between(over(r.Series.Exact, r.Series.Seconds, true), 5*time.Minute, 15*time.Minute)
		charts = append(charts, &chart.Chart{
			Title: titles[i], X: chart.Axis{Kind: chart.Time}, Y: chart.Axis{Label: "requests in the last minute"}, Height: 170,
			Series: []chart.Series{
				{Name: "exact", Points: exact, Color: "#9aa0a8"},
				{Name: "estimate", Points: between(over(r.Series.Estimate, r.Series.Seconds, true), 5*time.Minute, 15*time.Minute), Color: chart.Palette(1)},
				{Name: "100", Points: []chart.Point{{X: exact[0].X, Y: 100}, {X: exact[len(exact)-1].X, Y: 100}}, Dashes: chart.Dashed, Color: chart.Red},
			},
		})
	}
	check.OK(t, chart.Write(filepath.Join(root, criteoChart), charts...))
}

// drawSpikes draws the tokens in the minutes after a full hour, without a limit and with one.
func drawSpikes(t *testing.T) {
	t.Helper()
	s := spikes
	s.algorithms = []string{algorithm.Unlimited, algorithm.Sliding}
	ignoring := s.run(t, true)[0].results
	s.retry = true
	retrying := s.run(t, true)[0].results
	var charts []*chart.Chart
	for _, one := range []struct {
		title string
		*algorithm.Result
	}{
		{"no limit", &ignoring[0]},
		{"limit 20 per minute, clients do not retry", &ignoring[1]},
		{"limit 20 per minute, clients retry after Retry-After", &retrying[1]},
	} {
		points := between(over(one.Series.Tokens, one.Series.Seconds, false), 59*time.Minute, 66*time.Minute)
		charts = append(charts, &chart.Chart{
			Title: "Tokens: " + one.title, X: chart.Axis{Kind: chart.Time}, Y: chart.Axis{Label: "tokens per 10 s"}, Height: 110,
			Series: []chart.Series{{Points: points, Color: chart.Palette(0), Step: true, Kind: chart.Area}},
		})
	}
	check.OK(t, chart.Write(filepath.Join(root, spikesChart), charts...))
}
