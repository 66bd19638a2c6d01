package report

import (
	"cmp"
	"fmt"
	"html/template"
	"image/color"
	"slices"
	"strconv"
	"time"

	"oauth-server/internal/chart"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
)

// tint is a colour: a CSS variable in the page, which differs in dark mode, and a value in files.
type tint struct {
	css  template.CSS
	file color.Color
}

var (
	red   = tint{"var(--red)", chart.Red}
	tints = []tint{
		{"var(--blue)", chart.Palette(0)},
		{"var(--orange)", chart.Palette(1)},
		{"var(--green)", chart.Palette(2)},
		{"var(--purple)", chart.Palette(3)},
		{"var(--grey)", chart.Palette(6)}, // not the sky blue, which is too close to blue
		{"var(--brown)", chart.Palette(5)},
	}
	blue, orange, green = tints[0], tints[1], tints[2]
)

// diagram is a chart with the additional data for the page: the same values as a table.
type diagram struct {
	chart *chart.Chart
	tints []tint
	// values is how many of the series have values, with a column of the table. The series after
	// them are marks.
	values int
	table  *table
	reads  reads
}

func (d *diagram) add(s chart.Series, t tint) {
	s.Color = t.file
	d.chart.Series = append(d.chart.Series, s)
	d.tints = append(d.tints, t)
}

// tabulate adds a table of the values of the series, which share their X values.
func (d *diagram) tabulate(first string, name func(x float64) string, value func(y float64) cell) {
	d.values = len(d.chart.Series)
	d.table = &table{Caption: d.chart.Title, Columns: []column{{Name: first}}}
	for _, s := range d.chart.Series {
		d.table.Columns = append(d.table.Columns, column{Name: s.Name, Number: true})
	}
	for i, p := range d.chart.Series[0].Points {
		r := row{X: strconv.FormatFloat(p.X, 'f', -1, 64), Cells: []cell{{Text: name(p.X)}}}
		for _, s := range d.chart.Series {
			r.Cells = append(r.Cells, value(s.Points[i].Y))
		}
		d.table.Rows = append(d.table.Rows, r)
	}
}

// picture is a diagram in the page, in a wide form and a narrow one for phones.
type picture struct {
	Title, Subtitle string
	Reads           reads
	Log             bool // the X axis
	Series          []series
	Wide, Narrow    *chart.Inline
	Table           *table
}

// reads selects how a script reads a value from a picture.
type reads string

const (
	parts  reads = "parts"  // each value applies until the next time
	steps  reads = "steps"  // each value holds until the next one
	points reads = "points" // the nearest one
)

type series struct {
	Number int
	Name   string
	Tint   template.CSS
	Mark   bool // not a value, so it cannot be read or hidden
}

// seriesNumbers returns the numbers of series that the page has rules for: as many as a diagram may
// have.
func seriesNumbers() []int {
	numbers := make([]int, 1+len(tints))
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

func (d *diagram) picture() (*picture, error) {
	p := &picture{Title: d.chart.Title, Subtitle: d.chart.Subtitle, Table: d.table, Reads: d.reads, Log: d.chart.X.Scale == chart.Log}
	for i, s := range d.chart.Series {
		p.Series = append(p.Series, series{Number: i, Name: s.Name, Tint: d.tints[i].css, Mark: i >= d.values})
	}
	var err error
	wide, narrow := *d.chart, *d.chart
	wide.Width, wide.Height = 860, 240
	if p.Wide, err = wide.Inline(); err != nil {
		return nil, fmt.Errorf("draw %s: %w", d.chart.Title, err)
	}
	narrow.Width, narrow.Height = 380, 200
	if p.Narrow, err = narrow.Inline(); err != nil {
		return nil, fmt.Errorf("draw %s: %w", d.chart.Title, err)
	}
	return p, nil
}

// maxParts is the maximum number of time parts in a diagram: more would be too narrow to point at.
const maxParts = 288

// grid divides the time into equal parts.
type grid struct {
	start, step time.Duration // since 1970
	n           int
}

// gridOf returns the grid of a series. It joins as many parts of the series as needed to fit a
// diagram.
func gridOf(s *simulate.Series) grid {
	step := s.Step.Duration()
	g := grid{start: time.Duration(s.Start.UnixNano()), step: step * time.Duration((len(s.Requests)+maxParts-1)/maxParts)}
	if g.step > 0 {
		g.n = int((step*time.Duration(len(s.Requests)) + g.step - 1) / g.step)
	}
	return g
}

// points returns the counts of a series in the parts of the grid, and one more point to end the
// last part.
func (g grid) points(s *simulate.Series, counts []uint64) []chart.Point {
	sums := make([]uint64, g.n)
	for i, n := range counts {
		at := time.Duration(s.Start.UnixNano()) + time.Duration(i)*s.Step.Duration() - g.start
		sums[min(max(int(at/g.step), 0), g.n-1)] += n
	}
	all := make([]chart.Point, 0, g.n+1)
	for i, n := range sums {
		all = append(all, chart.Point{X: (g.start + time.Duration(i)*g.step).Seconds(), Y: float64(n)})
	}
	return append(all, chart.Point{X: (g.start + time.Duration(g.n)*g.step).Seconds(), Y: all[g.n-1].Y})
}

// unit returns the unit of the counts.
func (g grid) unit() string { return "requests per " + ratelimit.FormatWindow(g.step) }

// name returns the time at which a part begins.
func (g grid) name(x float64) string {
	layout := "2 Jan 15:04"
	if g.step < time.Minute {
		layout = "2 Jan 15:04:05"
	}
	return time.Unix(int64(x), 0).UTC().Format(layout)
}

func newDiagram(title, subtitle string, g grid) *diagram {
	return &diagram{reads: parts, chart: &chart.Chart{
		Title: title, Subtitle: subtitle, X: chart.Axis{Scale: chart.Time}, Y: chart.Axis{Label: g.unit()},
	}}
}

// finish tabulates counts over time. The point that ends the last part gets no row.
func (d *diagram) finish(g grid) *diagram {
	d.tabulate("From, UTC", g.name, func(y float64) cell { return number(uint64(y)) })
	d.table.Rows = d.table.Rows[:g.n]
	return d
}

// overTime returns the diagrams of outcomes over time: for all requests, and for the clients with
// the most refusals.
func overTime(r *simulate.Result) (all []*diagram) {
	if g := gridOf(&r.Series); g.n > 0 {
		d := newDiagram("Requests over time", "those that would have been refused are a part of all", g)
		d.add(chart.Series{Name: "all", Kind: chart.Area, Step: true, Points: g.points(&r.Series, r.Series.Requests)}, blue)
		d.add(chart.Series{Name: "refused", Kind: chart.Area, Step: true, Points: g.points(&r.Series, r.Series.Refused)}, red)
		if len(r.Series.Delayed) > 0 {
			d.add(chart.Series{Name: "delayed", Step: true, Points: g.points(&r.Series, r.Series.Delayed)}, orange)
		}
		if len(r.Series.Reused) > 0 {
			d.add(chart.Series{Name: "reused", Step: true, Points: g.points(&r.Series, r.Series.Reused)}, green)
		}
		all = append(all, d.finish(g))
	}
	if d := byClient(r); d != nil {
		all = append(all, d)
	}
	return all
}

// byClient returns the refused requests of the clients with the most refusals, or nil without
// refusals.
func byClient(r *simulate.Result) *diagram {
	var hit []*simulate.Client
	g := gridOf(&r.Series)
	for i := range r.Clients {
		c := &r.Clients[i]
		if c.Series == nil || c.Refused() == 0 || len(hit) == len(tints) {
			continue
		}
		hit = append(hit, c)
		if own := gridOf(c.Series); own.step > g.step {
			g.n = int((g.step*time.Duration(g.n) + own.step - 1) / own.step)
			g.step = own.step
		}
	}
	if len(hit) == 0 || g.n == 0 {
		return nil
	}
	d := newDiagram("Refused requests by client", "the clients of which most was refused", g)
	d.chart.Y.Label = "refused " + d.chart.Y.Label // a scale other than the one for all requests
	for i, c := range hit {
		d.add(chart.Series{Name: printable(c.ClientID), Step: true, Points: g.points(c.Series, c.Series.Refused)}, tints[i])
	}
	return d.finish(g)
}

// below returns the start of an axis of percent that ends at 100.
func below(points []chart.Point) float64 {
	lowest := slices.MinFunc(points, func(a, b chart.Point) int { return cmp.Compare(a.Y, b.Y) }).Y
	switch {
	case lowest >= 99:
		return 99
	case lowest >= 90:
		return 90
	}
	return 0
}
