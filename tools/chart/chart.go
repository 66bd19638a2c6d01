package chart

import (
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"time"
)

// Point is one value at a time. NaN is a gap.
type Point struct {
	At    time.Time
	Value float64
}

// Line is one named series of points in the order of time.
type Line struct {
	Name   string
	Points []Point
	// Limit draws the line dashed, Dotted as dots.
	Limit, Dotted bool
	// Color is the next one of the palette if nil.
	Color color.Color
}

// Chart is a chart of lines over time.
type Chart struct {
	Title, Subtitle string
	Unit            string // of the values, at the axis
	From, To        time.Time
	Lines           []Line
	// Gap is the longest time between two points that are joined; zero joins all.
	// The points of a limit are always joined.
	Gap time.Duration
}

// The picture's size in pixels; the legend is added below.
const (
	width        = 1200
	plotTop      = 104
	plotHeight   = 400
	plotLeft     = 84
	plotRight    = width - 28
	plotBottom   = plotTop + plotHeight
	legendTop    = plotBottom + 56
	legendRow    = 26
	legendColumn = (plotRight - plotLeft) / 3
)

// ErrNothing is returned for a chart without lines, or that ends before it starts.
var ErrNothing = errors.New("chart: there is nothing to draw")

// PNG writes the charts to w, one above the other, 1200 pixels wide. They have the same scale, so
// that they can be compared.
func PNG(w io.Writer, charts ...*Chart) error {
	high, bottom := 0.0, 0
	for _, c := range charts {
		if !c.To.After(c.From) || len(c.Lines) == 0 {
			return ErrNothing
		}
		high = max(high, c.highest())
	}
	if len(charts) == 0 {
		return ErrNothing
	}
	axis := niceAxis(high)
	pages := make([]*page, 0, len(charts))
	for _, c := range charts {
		p, err := c.page(axis)
		if err != nil {
			return err
		}
		pages, bottom = append(pages, p), bottom+p.image.Rect.Dy()
	}
	all := image.NewRGBA(image.Rect(0, 0, width, bottom))
	top := 0
	for _, p := range pages {
		draw.Draw(all, p.image.Rect.Add(image.Pt(0, top)), p.image, image.Point{}, draw.Src)
		top += p.image.Rect.Dy()
	}
	return png.Encode(w, all)
}

// page draws the chart.
func (c *Chart) page(a axis) (*page, error) {
	rows := (len(c.Lines) + 2) / 3
	p, err := newPage(image.Rect(0, 0, width, legendTop+rows*legendRow+12))
	if err != nil {
		return nil, err
	}
	p.text(c.Title, plotLeft, 36, p.bold, ink)
	p.text(c.Subtitle, plotLeft, 60, p.small, faint)
	c.grid(p, a)
	for i := range c.Lines {
		c.line(p, a, i)
	}
	c.legend(p)
	return p, nil
}

func (c *Chart) highest() float64 {
	high := 0.0
	for _, l := range c.Lines {
		for _, pt := range l.Points {
			if pt.Value > high { // false for NaN
				high = pt.Value
			}
		}
	}
	return high
}

func (c *Chart) x(t time.Time) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(t.Sub(c.From))/float64(c.To.Sub(c.From))
}

func (c *Chart) color(i int) color.Color {
	if c.Lines[i].Color != nil {
		return c.Lines[i].Color
	}
	n := 0 // only lines without a colour of their own use up the palette
	for _, l := range c.Lines[:i] {
		if l.Color == nil {
			n++
		}
	}
	return PaletteColor(n)
}

// grid draws the axes with their labels.
func (c *Chart) grid(p *page, a axis) {
	for _, v := range a.ticks() {
		y := a.y(v)
		p.stroke([]xy{{plotLeft, y}, {plotRight, y}}, 1, gridInk)
		p.textRight(a.label(v), plotLeft-10, int(y)+5, p.small, faint)
	}
	p.text(c.Unit, 14, plotTop-14, p.small, faint)
	step, layout := timeStep(c.To.Sub(c.From))
	for t := c.From.Truncate(step).Add(step); t.Before(c.To); t = t.Add(step) {
		x := c.x(t)
		p.stroke([]xy{{x, plotTop}, {x, plotBottom}}, 1, gridInk)
		p.textCentred(t.UTC().Format(layout), int(x), plotBottom+22, p.small, faint)
	}
	p.textRight("UTC", plotRight, plotBottom+40, p.small, faint)
	p.stroke([]xy{{plotLeft, plotBottom}, {plotRight, plotBottom}}, 1.5, faint)
}

// line draws line i, in several pieces if there are gaps.
func (c *Chart) line(p *page, a axis, i int) {
	l := &c.Lines[i]
	var piece []xy
	var last time.Time
	flush := func() {
		switch {
		case l.Limit || l.Dotted:
			p.dash(piece, l.pattern(), c.color(i))
		case len(piece) == 1: // alone between two gaps
			p.dot(piece[0], 3, c.color(i))
		default:
			p.stroke(piece, 2.5, c.color(i))
		}
		piece = nil
	}
	for _, pt := range l.Points {
		if pt.Value != pt.Value || (c.Gap > 0 && !l.Limit && len(piece) > 0 && pt.At.Sub(last) > c.Gap) {
			flush()
		}
		if pt.Value == pt.Value {
			piece = append(piece, xy{c.x(pt.At), a.y(pt.Value)})
			last = pt.At
		}
	}
	flush()
}

func (c *Chart) legend(p *page) {
	for i, l := range c.Lines {
		x, y := plotLeft+i%3*legendColumn, legendTop+i/3*legendRow
		key := []xy{{float64(x), float64(y) - 5}, {float64(x) + 30, float64(y) - 5}}
		if l.Limit || l.Dotted {
			p.dash(key, l.pattern(), c.color(i))
		} else {
			p.stroke(key, 4, c.color(i))
		}
		p.text(l.Name, x+40, y, p.small, ink)
	}
}

// pattern is how the line is broken up.
func (l *Line) pattern() pattern {
	if l.Limit {
		return dashes
	}
	return dots
}
