package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// series is named points in the order of X.
type series struct {
	Number int
	Name   string
	Tint   template.CSS
	Mark   bool // not a value, so it cannot be read or hidden
	points []point
	kind   kind
	step   bool   // each value holds until the next point
	dots   bool   // at each point
	dashes string // of the line, as in stroke-dasharray
}

type point struct{ X, Y float64 }

// kind is how a series is drawn.
type kind int

const (
	line kind = iota
	area      // a line, filled down to the axis
	bar       // beside the bars of other series
)

// drawing is a chart as an SVG element. Its colours and fonts come from the style of the page.
// Series 0 is a group of the class series-0, and the labels of the Y axis have the class mark.
type drawing struct {
	SVG template.HTML
	// Left, Right, Top and Bottom are the edges of the data, in units of the SVG's view box.
	Left, Right, Top, Bottom float64
	// MinX, MaxX, MinY and MaxY are the values at these edges.
	MinX, MaxX, MinY, MaxY float64

	x, y scale
	out  strings.Builder
}

// Lengths of the layout, in units of the view box.
const (
	margin      = 12
	unitHeight  = 26  // of the unit above the Y axis
	labelHeight = 20  // of the labels below the X axis
	tickLength  = 6   // of the marks at both axes
	digitWidth  = 6.8 // of a text of 12 px
)

// draw draws the chart. The height is without the labels.
func (d *diagram) draw(width, height float64) *drawing {
	p := &drawing{Right: width - 2*margin, Top: unitHeight, Bottom: unitHeight + height}
	p.x, p.y = d.scales(int(width / 85))
	p.MinX, p.MaxX, p.MinY, p.MaxY = p.x.low, p.x.high, p.y.low, p.y.high
	longest := 0
	for _, t := range p.y.ticks {
		longest = max(longest, len(t.label))
	}
	p.Left = math.Round(margin + digitWidth*float64(longest) + tickLength + 4)
	bottom := p.Bottom + labelHeight + margin
	if d.xLabel != "" {
		bottom += labelHeight
	}
	p.printf(`<svg viewBox="0 0 %v %v" aria-hidden="true" focusable="false">`, width, bottom)
	p.axes(d)
	bars := 0
	for _, s := range d.Series {
		if s.kind == bar {
			bars++
		}
	}
	for i := range d.Series {
		p.printf("\n"+`<g class="series-%d" style="color:var(--series-%[1]d)">`, i)
		if d.Series[i].kind == bar {
			p.bars(&d.Series[i], i, bars)
		} else {
			p.curve(&d.Series[i])
		}
		p.printf("</g>")
	}
	p.printf("\n</svg>\n")
	p.SVG = template.HTML(p.out.String()) //nolint:gosec // G203: its texts are escaped
	return p
}

// scales returns the axes. The X axis has about most labels.
func (d *diagram) scales(most int) (x, y scale) {
	first := d.Series[0].points
	low, high, highest := first[0].X, first[len(first)-1].X, 0.0
	for _, s := range d.Series {
		for _, p := range s.points {
			low, high, highest = min(low, p.X), max(high, p.X), max(highest, p.Y)
		}
	}
	switch {
	case d.names != nil:
		x = named(d.names, 2*most) // names are shorter than times
	case d.Log:
		x = logarithmic(low, high)
	default:
		x = overDays(low, high, most)
	}
	if d.yMax > 0 {
		return x, linear(d.yMin, d.yMax)
	}
	return x, fromZero(highest)
}

func (p *drawing) printf(format string, args ...any) { _, _ = fmt.Fprintf(&p.out, format, args...) }

// across returns the place of a value of the X axis.
func (p *drawing) across(v float64) string {
	return place(p.Left + p.x.fraction(v)*(p.Right-p.Left))
}

// up returns the place of a value of the Y axis.
func (p *drawing) up(v float64) string {
	return place(p.Bottom - p.y.fraction(v)*(p.Bottom-p.Top))
}

// axes draws the grid, the labels and the units.
func (p *drawing) axes(d *diagram) {
	p.printf("\n" + `<path class="grid" d="`)
	for _, t := range p.y.ticks {
		p.printf("M%s %sH%s", place(p.Left-tickLength), p.up(t.value), place(p.Right))
	}
	for _, t := range p.x.ticks {
		top := p.Top
		if d.names != nil {
			top = p.Bottom
		}
		p.printf("M%s %sV%s", p.across(t.value), place(top), place(p.Bottom+tickLength))
	}
	p.printf(`"/>`)
	for _, t := range p.y.ticks {
		p.printf(`<text class="mark" x="%s" y="%s" dy="4" text-anchor="end">%s</text>`, place(p.Left-tickLength-4), p.up(t.value), t.label)
	}
	for _, t := range p.x.ticks {
		p.printf(`<text x="%s" y="%s" text-anchor="middle">%s</text>`, p.across(t.value), place(p.Bottom+labelHeight), html.EscapeString(t.label))
	}
	p.printf(`<text x="%v" y="%v">%s</text>`, margin, margin, html.EscapeString(d.yLabel))
	p.printf(`<text x="%s" y="%s" text-anchor="end">%s</text>`, place(p.Right), place(p.Bottom+2*labelHeight), html.EscapeString(d.xLabel))
}

// curve draws a line, and fills the area below it.
func (p *drawing) curve(s *series) {
	first, last := s.points[0], s.points[len(s.points)-1]
	var path strings.Builder
	path.WriteString("M" + p.across(first.X) + " " + p.up(first.Y))
	for _, to := range s.points[1:] {
		if s.step {
			path.WriteString("H" + p.across(to.X) + "V" + p.up(to.Y))
		} else {
			path.WriteString("L" + p.across(to.X) + " " + p.up(to.Y))
		}
	}
	if s.kind == area {
		p.printf(`<path class="area" d="%sV%sH%sZ"/>`, path.String(), place(p.Bottom), p.across(first.X))
	}
	p.printf(`<path class="line" stroke-dasharray="%s" d="%s"/>`, s.dashes, path.String())
	if s.dots || first.X == last.X && first.Y == last.Y {
		for _, at := range s.points {
			p.printf(`<circle r="2.75" cx="%s" cy="%s"/>`, p.across(at.X), p.up(at.Y))
		}
	}
}

// bars draws a bar for each name: number i of n beside each other.
func (p *drawing) bars(s *series, i, n int) {
	width := min(0.75*(p.Right-p.Left)/(p.x.high-p.x.low)/float64(n), 60)
	for _, at := range s.points {
		left := p.Left + p.x.fraction(at.X)*(p.Right-p.Left) + width*(float64(i)-float64(n)/2)
		p.printf(`<path class="bar" d="M%s %sV%sh%sV%sZ"/>`, place(left), place(p.Bottom), p.up(at.Y), place(width), place(p.Bottom))
	}
}
