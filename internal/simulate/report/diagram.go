package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/chart"
)

const (
	red    template.CSS = "var(--red)"
	blue   template.CSS = "var(--blue)"
	orange template.CSS = "var(--orange)"
	green  template.CSS = "var(--green)"
)

// tints are the colours of the page for series. They differ in dark mode.
var tints = []template.CSS{blue, orange, green, "var(--purple)", "var(--grey)", "var(--brown)"}

// series is a named part of a diagram.
type series struct {
	Number int
	Name   string
	Tint   template.CSS
	Mark   bool // not a value, so it cannot be read or hidden
	chart.Series
}

// diagram is a chart, with the same values as a table.
type diagram struct {
	Title, Subtitle string
	x, y            chart.Axis
	Series          []series
	Table           *Table
	Reads           reads
}

// Log reports whether the X axis is logarithmic.
func (d *diagram) Log() bool { return d.x.Kind == chart.Log }

func (d *diagram) add(s series, tint template.CSS) {
	s.Number, s.Tint = len(d.Series), tint
	d.Series = append(d.Series, s)
}

// tabulate adds a table of the values of the series, which share their X values.
func (d *diagram) tabulate(first string, name func(x float64) string, value func(y float64) cell) {
	d.Table = &Table{Caption: d.Title, Columns: []column{{Name: first}}}
	for _, s := range d.Series {
		d.Table.Columns = append(d.Table.Columns, column{Name: s.Name, Number: true})
	}
	for i, p := range d.Series[0].Points {
		r := row{X: strconv.FormatFloat(p.X, 'f', -1, 64), Cells: []cell{{Text: name(p.X)}}}
		for _, s := range d.Series {
			r.Cells = append(r.Cells, value(s.Points[i].Y))
		}
		d.Table.Rows = append(d.Table.Rows, r)
	}
}

// Wide draws the diagram for the page.
func (d *diagram) Wide() *drawing { return d.draw(860, 240) }

// Narrow draws the diagram for phones.
func (d *diagram) Narrow() *drawing { return d.draw(380, 200) }

// drawing is a diagram as an SVG element.
type drawing struct {
	*chart.Drawing
	SVG template.HTML
}

func (d *diagram) draw(width, height float64) *drawing {
	c := chart.Chart{X: d.x, Y: d.y}
	for _, s := range d.Series {
		c.Series = append(c.Series, s.Series)
	}
	p := c.Draw(width, height)
	return &drawing{p, template.HTML(fmt.Sprintf( //nolint:gosec // G203: its texts are escaped
		`<svg viewBox="0 0 %v %v" aria-hidden="true" focusable="false">%s`+"\n</svg>\n", p.Width, p.Height, p.Content))}
}

// reads selects how a script reads a value from a diagram.
type reads string

const (
	parts  reads = "parts"  // each value applies until the next time
	steps  reads = "steps"  // each value holds until the next one
	points reads = "points" // the nearest one
)

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
	return &diagram{Reads: parts, Title: title, Subtitle: subtitle, x: chart.Axis{Label: "UTC", Kind: chart.Time}, y: chart.Axis{Label: g.unit()}}
}

// finish tabulates counts over time. The point that ends the last part gets no row.
func (d *diagram) finish(g grid) *diagram {
	d.tabulate("From, UTC", g.name, func(y float64) cell { return number(uint64(y)) })
	d.Table.Rows = d.Table.Rows[:g.n]
	return d
}

// overTime returns the diagrams of outcomes over time: for all requests, and for the clients with
// the most refusals.
func overTime(r *simulate.Result) (all []*diagram) {
	if g := gridOf(&r.Series); g.n > 0 {
		d := newDiagram("Requests over time", "all includes refused", g)
		d.add(series{Name: "all", Series: chart.Series{Kind: chart.Area, Step: true, Points: g.points(&r.Series, r.Series.Requests)}}, blue)
		d.add(series{Name: "refused", Series: chart.Series{Kind: chart.Area, Step: true, Points: g.points(&r.Series, r.Series.Refused)}}, red)
		if len(r.Series.Delayed) > 0 {
			d.add(series{Name: "delayed", Series: chart.Series{Step: true, Points: g.points(&r.Series, r.Series.Delayed)}}, orange)
		}
		if len(r.Series.Reused) > 0 {
			d.add(series{Name: "reused", Series: chart.Series{Step: true, Points: g.points(&r.Series, r.Series.Reused)}}, green)
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
	d := newDiagram("Refused requests by client", "the clients with the most refused requests", g)
	d.y.Label = "refused " + d.y.Label // a scale other than the one for all requests
	for i, c := range hit {
		d.add(series{Name: printable(c.ClientID), Series: chart.Series{Step: true, Points: g.points(c.Series, c.Series.Refused)}}, tints[i])
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
