// Package chart writes the charts of the documentation as SVG: titles, legends and notes around what internal/simulate/chart
// draws for reports. The same chart gives the same bytes.
package chart

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
	"time"

	plot "oauth-server/internal/simulate/chart"
)

// Chart is a set of series over one X axis.
type Chart struct {
	Title, Subtitle string
	X, Y            Axis
	Series          []Series
	Notes           []Note  // drawn over the series
	Height          float64 // of the area between the axes; 0 stands for 270
}

type (
	// Axis is one of the axes.
	Axis = plot.Axis
	// Point is a value of Y at X.
	Point = plot.Point
)

// The kinds of axes and of series, other than the usual ones, and the dashes of lines.
const (
	Log    = plot.Log // values of 0 or below are gaps
	Time   = plot.Time
	Area   = plot.Area
	Dashed = "7 4"
	Dotted = "2 2.5"
)

// Series is named points in the order of X. A NaN or infinite Y is a gap.
type Series struct {
	Name   string // empty: left out of the legend
	Points []Point
	Kind   plot.Kind
	Step   bool // each value holds until the next point
	Dots   bool // at each point
	Dashes string
	Gap    float64 // the longest X distance between connected points; 0 connects all
	Color  string  // empty: the next colour of the palette
}

// Note is a text in the chart, at the start of it, or its text-anchor.
type Note struct {
	At                  Point
	Text, Anchor, Color string
}

// At returns a point of a chart over time.
func At(t time.Time, y float64) Point { return Point{X: Seconds(t), Y: y} }

// Seconds converts a time to a value of a time axis.
func Seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

const (
	ink, faint, rule = "#22262e", "#6b7280", "#e5e7eb"
	// Red is for limits and denials.
	Red = "#d51d1d"
)

// palette is Okabe and Ito's, which stays distinct for colour-blind people, without yellow (too faint on white) and red.
var palette = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c564b", "#7f7f7f"}

// Palette returns colour n of the palette, counted from 0. It starts over after the last one.
func Palette(n int) string { return palette[n%len(palette)] }

// ErrNothing is returned for a chart without values.
var ErrNothing = errors.New("chart: there is nothing to draw")

// Write writes the chart to a file.
func (c *Chart) Write(path string) error { return Write(path, c) }

// Write writes charts to a file, one above the other. Charts with the same Y label get the same scale.
func Write(path string, charts ...*Chart) error {
	picture, err := SVG(charts...)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(picture), 0o644) //nolint:gosec // G306: as any picture
}

// Lengths of the layout, in pixels.
const (
	width       = 800
	margin      = 12
	titleHeight = 34
	subHeight   = 18 // of the subtitle
	legendRow   = 19
	keyWidth    = 24
	letter      = 6.2 // width of a letter, about
)

// SVG returns charts as one picture, like [Write]. Its background is white, which keeps it readable on dark pages.
func SVG(charts ...*Chart) (string, error) {
	if len(charts) == 0 {
		return "", ErrNothing
	}
	all, reach := make([]part, len(charts)), map[string]float64{}
	for i, c := range charts {
		if err := all[i].take(c); err != nil {
			return "", err
		}
		reach[c.Y.Label] = max(reach[c.Y.Label], all[i].highest)
	}
	var titles []string
	var body strings.Builder
	top := 0.0
	for i := range all {
		all[i].drawn.Y.Reach = reach[charts[i].Y.Label]
		text, height := all[i].draw()
		fmt.Fprintf(&body, "<g transform=\"translate(0 %v)\">%s</g>\n", top, text)
		top += height
		titles = append(titles, charts[i].Title)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %d %v" font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="12" fill="%s" stroke-linejoin="round">`+
		"<title>%s</title>\n<rect width=\"%[1]d\" height=\"%[2]v\" fill=\"#fff\"/>\n%[5]s</svg>\n",
		width, top, faint, html.EscapeString(strings.Join(titles, "; ")), body.String()), nil
}

// part is a chart on its way to a picture.
type part struct {
	*Chart
	drawn   plot.Chart
	colors  []string // of the drawn series
	named   []Series // with the colours that they are drawn in
	highest float64
}

// take cuts the series at gaps and chooses their colours.
func (p *part) take(c *Chart) error {
	*p = part{Chart: c, drawn: plot.Chart{X: c.X, Y: c.Y}}
	if p.drawn.X.Label == "" && c.X.Kind == Time {
		p.drawn.X.Label = "UTC"
	}
	for _, a := range []Axis{c.X, c.Y} {
		if a.Kind == Log && a.Max > a.Min && a.Min <= 0 {
			return fmt.Errorf("chart: a logarithmic axis cannot begin at %v", a.Min)
		}
	}
	next := 0
	for _, s := range c.Series {
		if s.Color == "" {
			s.Color = Palette(next)
			next++
		}
		if s.Name != "" {
			p.named = append(p.named, s)
		}
		for _, piece := range c.pieces(&s) {
			p.drawn.Series = append(p.drawn.Series, plot.Series{Points: piece, Kind: s.Kind, Step: s.Step, Dots: s.Dots, Dashes: s.Dashes})
			p.colors = append(p.colors, s.Color)
			for _, at := range piece {
				p.highest = max(p.highest, at.Y)
			}
		}
	}
	if len(p.colors) == 0 {
		return ErrNothing
	}
	return nil
}

// pieces returns the runs of points between gaps.
func (c *Chart) pieces(s *Series) (all [][]Point) {
	var piece []Point
	for _, at := range s.Points {
		drawable := !math.IsNaN(at.Y) && !math.IsInf(at.Y, 0) && (c.X.Kind != Log || at.X > 0) && (c.Y.Kind != Log || at.Y > 0)
		if len(piece) > 0 && (!drawable || s.Gap > 0 && at.X-piece[len(piece)-1].X > s.Gap) {
			all, piece = append(all, piece), nil
		}
		if drawable {
			piece = append(piece, at)
		}
	}
	if len(piece) > 0 {
		all = append(all, piece)
	}
	return all
}

// draw returns the chart with its title, legend and notes, and the height of all.
func (p *part) draw() (text string, height float64) {
	var b strings.Builder
	if p.Title != "" {
		height += titleHeight
	}
	if p.Subtitle != "" {
		height += subHeight
	}
	area := 270.0
	if p.Height > 0 {
		area = p.Height
	}
	d := p.drawn.Draw(width, area)
	fmt.Fprintf(&b, `<text x="%v" y="26" font-size="17" font-weight="bold" fill="%s">%s</text>`, d.Left, ink, html.EscapeString(p.Title))
	fmt.Fprintf(&b, `<text x="%v" y="%v">%s</text>`, d.Left, height-7, html.EscapeString(p.Subtitle))
	plain := []string{
		`class="grid"`, `fill="none" stroke="` + rule + `"`, `class="area"`, `fill="currentColor" fill-opacity=".35"`,
		`class="line"`, `fill="none" stroke="currentColor" stroke-width="1.75"`, `<circle`, `<circle fill="currentColor"`, `class="mark" `, ``,
		` stroke-dasharray=""`, ``,
	}
	for i, color := range p.colors {
		plain = append(plain, fmt.Sprintf(`class="series-%d" style="color:var(--series-%[1]d)"`, i), `color="`+color+`"`)
	}
	fmt.Fprintf(&b, `<g transform="translate(0 %v)">%s`, height, strings.NewReplacer(plain...).Replace(d.Content))
	for _, n := range p.Notes {
		color := n.Color
		if color == "" {
			color = ink
		}
		fmt.Fprintf(&b, `<text x="%s" y="%s" dy="4" text-anchor="%s" fill="%s">%s</text>`, d.Across(n.At.X), d.Up(n.At.Y), n.Anchor, color, html.EscapeString(n.Text))
	}
	b.WriteString("</g>")
	height += d.Height
	return b.String() + p.legend(d.Left, height), height + legendRow*float64(p.rows())
}

// columns returns the number of columns of the legend.
func (p *part) columns() int {
	widest := 0
	for _, s := range p.named {
		widest = max(widest, len(s.Name))
	}
	return max(1, min(len(p.named), int((width-6*margin)/(letter*float64(widest)+keyWidth+2*margin))))
}

// rows returns the number of rows of the legend.
func (p *part) rows() int { return (len(p.named) + p.columns() - 1) / p.columns() }

func (p *part) legend(left, top float64) string {
	var b strings.Builder
	columns := p.columns()
	column := math.Floor((width - margin - left) / float64(columns))
	for i, s := range p.named {
		x, y := left+column*float64(i%columns), top+legendRow*float64(i/columns)
		fmt.Fprintf(&b, `<path fill="none" stroke="%s" stroke-width="1.75" stroke-dasharray="%s" d="M%v %vh%d"/><text x="%v" y="%v" fill="%s">%s</text>`,
			s.Color, s.Dashes, x, y, keyWidth, x+keyWidth+8, y+4, ink, html.EscapeString(s.Name))
	}
	return b.String()
}
