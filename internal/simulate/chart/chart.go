// Package chart draws series over one X axis as the content of an SVG element. Colours and fonts come from the element around
// it: series 0 is a group of the class series-0 with the colour var(--series-0). Its parts have the classes grid, mark (labels
// of the Y axis), line, area and bar.
package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Chart is a set of series with their axes.
type Chart struct {
	X, Y   Axis
	Series []Series
}

// Axis is one of the axes. Names are for an X axis with the values 0, 1, 2 and so on.
type Axis struct {
	Label string
	Kind  AxisKind
	Names []string
	// Min and Max are the range if Max is above Min. Otherwise an X axis shows all values, and a Y axis begins at 0.
	Min, Max float64
	Reach    float64 // a Y axis that begins at 0 goes at least so far
}

// AxisKind is how an axis places values.
type AxisKind int

// The kinds of axes.
const (
	Linear AxisKind = iota
	Log             // values above 0
	Time            // seconds since 1970, for an X axis
)

// Series is points in the order of X.
type Series struct {
	Points []Point
	Kind   Kind
	Step   bool   // each value holds until the next point
	Dots   bool   // at each point
	Dashes string // of the line, as in stroke-dasharray
}

// Point is a value of Y at X.
type Point struct{ X, Y float64 }

// Kind is how a series is drawn.
type Kind int

// The kinds of series.
const (
	Line Kind = iota
	Area      // a line, filled down to the axis
	Bar       // beside the bars of other series
)

// Drawing is a chart as the content of an SVG element.
type Drawing struct {
	Content string
	// Width and Height are the view box.
	Width, Height float64
	// Left, Right, Top and Bottom are the edges of the data in the view box.
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

// Draw draws the chart. The height is without the labels. There must be a point.
func (c *Chart) Draw(width, height float64) *Drawing {
	p := &Drawing{Width: width, Right: width - 2*margin, Top: unitHeight, Bottom: unitHeight + height}
	p.x, p.y = c.scales(int(width / 85))
	p.MinX, p.MaxX, p.MinY, p.MaxY = p.x.low, p.x.high, p.y.low, p.y.high
	longest := 0
	for _, t := range p.y.ticks {
		longest = max(longest, len(t.label))
	}
	p.Left = math.Round(margin + digitWidth*float64(longest) + tickLength + 4)
	p.Height = p.Bottom + labelHeight + margin
	if c.X.Label != "" {
		p.Height += labelHeight
	}
	p.axes(c)
	bars := 0
	for _, s := range c.Series {
		if s.Kind == Bar {
			bars++
		}
	}
	for i := range c.Series {
		p.printf("\n"+`<g class="series-%d" style="color:var(--series-%[1]d)">`, i)
		if c.Series[i].Kind == Bar {
			p.bars(&c.Series[i], i, bars)
		} else {
			p.curve(&c.Series[i])
		}
		p.printf("</g>")
	}
	p.Content = p.out.String()
	return p
}

// scales returns the scales of the axes. The X axis has about most labels.
func (c *Chart) scales(most int) (x, y scale) {
	low, high, lowest, highest := math.Inf(1), math.Inf(-1), math.Inf(1), 0.0
	for _, s := range c.Series {
		for _, p := range s.Points {
			low, high, lowest, highest = min(low, p.X), max(high, p.X), min(lowest, p.Y), max(highest, p.Y)
		}
	}
	if c.X.Max > c.X.Min {
		low, high = c.X.Min, c.X.Max
	}
	given := c.Y.Max > c.Y.Min
	if given {
		lowest, highest = c.Y.Min, c.Y.Max
	}
	switch {
	case c.X.Names != nil:
		x = named(c.X.Names, 2*most) // names are shorter than times
	case c.X.Kind == Log:
		x = logarithmic(low, high)
	case c.X.Kind == Time:
		x = overDays(low, high, most)
	default:
		x = linear(low, high, most)
	}
	switch {
	case c.Y.Kind == Log:
		return x, logarithmic(lowest, highest)
	case given:
		return x, linear(lowest, highest, 5)
	}
	return x, fromZero(max(highest, c.Y.Reach))
}

func (p *Drawing) printf(format string, args ...any) { _, _ = fmt.Fprintf(&p.out, format, args...) }

// Across returns the place of a value of the X axis.
func (p *Drawing) Across(v float64) string {
	return place(p.Left + p.x.fraction(v)*(p.Right-p.Left))
}

// Up returns the place of a value of the Y axis.
func (p *Drawing) Up(v float64) string {
	return place(p.Bottom - p.y.fraction(v)*(p.Bottom-p.Top))
}

// axes draws the grid, the labels and the units.
func (p *Drawing) axes(c *Chart) {
	p.printf("\n" + `<path class="grid" d="`)
	for _, t := range p.y.ticks {
		p.printf("M%s %sH%s", place(p.Left-tickLength), p.Up(t.value), place(p.Right))
	}
	for _, t := range p.x.ticks {
		top := p.Top
		if c.X.Names != nil {
			top = p.Bottom
		}
		p.printf("M%s %sV%s", p.Across(t.value), place(top), place(p.Bottom+tickLength))
	}
	p.printf(`"/>`)
	for _, t := range p.y.ticks {
		p.printf(`<text class="mark" x="%s" y="%s" dy="4" text-anchor="end">%s</text>`, place(p.Left-tickLength-4), p.Up(t.value), t.label)
	}
	for _, t := range p.x.ticks {
		p.printf(`<text x="%s" y="%s" text-anchor="middle">%s</text>`, p.Across(t.value), place(p.Bottom+labelHeight), html.EscapeString(t.label))
	}
	p.printf(`<text x="%v" y="%v">%s</text>`, margin, margin, html.EscapeString(c.Y.Label))
	p.printf(`<text x="%s" y="%s" text-anchor="end">%s</text>`, place(p.Right), place(p.Bottom+2*labelHeight), html.EscapeString(c.X.Label))
}

// curve draws a line, and fills the area below it.
func (p *Drawing) curve(s *Series) {
	first, last := s.Points[0], s.Points[len(s.Points)-1]
	var path strings.Builder
	path.WriteString("M" + p.Across(first.X) + " " + p.Up(first.Y))
	for _, to := range s.Points[1:] {
		if s.Step {
			path.WriteString("H" + p.Across(to.X) + "V" + p.Up(to.Y))
		} else {
			path.WriteString("L" + p.Across(to.X) + " " + p.Up(to.Y))
		}
	}
	if s.Kind == Area {
		p.printf(`<path class="area" d="%sV%sH%sZ"/>`, path.String(), place(p.Bottom), p.Across(first.X))
	}
	p.printf(`<path class="line" stroke-dasharray="%s" d="%s"/>`, s.Dashes, path.String())
	if s.Dots || first.X == last.X && first.Y == last.Y {
		for _, at := range s.Points {
			p.printf(`<circle r="2.75" cx="%s" cy="%s"/>`, p.Across(at.X), p.Up(at.Y))
		}
	}
}

// bars draws a bar for each name: number i of n beside each other.
func (p *Drawing) bars(s *Series, i, n int) {
	width := min(0.75*(p.Right-p.Left)/(p.x.high-p.x.low)/float64(n), 60)
	for _, at := range s.Points {
		left := p.Left + p.x.fraction(at.X)*(p.Right-p.Left) + width*(float64(i)-float64(n)/2)
		p.printf(`<path class="bar" d="M%s %sV%sh%sV%sZ"/>`, place(left), place(p.Bottom), p.Up(at.Y), place(width), place(p.Bottom))
	}
}
