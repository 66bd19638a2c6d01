package chart

import (
	"fmt"
	"image/color"
	"math"
)

// layer is a series ready for drawing.
type layer struct {
	*Series
	color color.Color
	// over are the points of the series, under the points of the series below it in a stack; nil is
	// the axis.
	over, under []Point
}

// layers returns the series, stacked if the chart is stacked, and the range of their values.
func (c *Chart) layers() (all []layer, x, y span, err error) {
	x, y = noSpan(), noSpan()
	for _, a := range []Axis{c.X, c.Y} {
		if a.Scale == Log && a.Min != a.Max && a.Min <= 0 {
			return nil, x, y, fmt.Errorf("chart: a logarithmic axis cannot begin at %v", a.Min)
		}
	}
	under := map[Kind][]Point{}
	for i, color := range c.colors() {
		s := &c.Series[i]
		l := layer{Series: s, color: color, over: s.Points}
		if c.Stacked && s.Kind != Line {
			l.under = under[s.Kind]
			if l.over, err = stack(s, l.under); err != nil {
				return nil, x, y, err
			}
			under[s.Kind] = l.over
		}
		for _, p := range l.over {
			if c.drawable(p) {
				x, y = x.with(p.X), y.with(p.Y)
			}
		}
		all = append(all, l)
	}
	if x.empty() {
		return nil, x, y, ErrNothing
	}
	return all, x, y, nil
}

// stack returns the points of a series on top of the series below. Gaps count as 0.
func stack(s *Series, under []Point) ([]Point, error) {
	if under != nil && len(under) != len(s.Points) {
		return nil, fmt.Errorf("chart: stack %q: %d points on %d", s.Name, len(s.Points), len(under))
	}
	over := make([]Point, len(s.Points))
	for i, p := range s.Points {
		if math.IsNaN(p.Y) || math.IsInf(p.Y, 0) {
			p.Y = 0
		}
		if under != nil {
			if p.X != under[i].X {
				return nil, fmt.Errorf("chart: stack %q: its point %d is at %v, the one below at %v", s.Name, i, p.X, under[i].X)
			}
			p.Y += under[i].Y
		}
		over[i] = p
	}
	return over, nil
}

// drawable reports whether a point can be drawn in the chart.
func (c *Chart) drawable(p Point) bool {
	for _, v := range []struct {
		float64
		Scale
	}{{p.X, c.X.Scale}, {p.Y, c.Y.Scale}} {
		if math.IsNaN(v.float64) || math.IsInf(v.float64, 0) || v.Scale == Log && v.float64 <= 0 {
			return false
		}
	}
	return true
}

// pieces returns the runs of points between gaps.
func (c *Chart) pieces(l *layer) (all [][]Point) {
	var piece []Point
	for _, p := range l.over {
		drawn := c.drawable(p)
		if len(piece) > 0 && (!drawn || l.Gap > 0 && p.X-piece[len(piece)-1].X > l.Gap) {
			all = append(all, piece)
			piece = nil
		}
		if drawn {
			piece = append(piece, p)
		}
	}
	if len(piece) > 0 {
		all = append(all, piece)
	}
	return all
}

// steps holds each value until the next point.
func steps(points []Point) []Point {
	var all []Point
	for i, p := range points {
		if i > 0 {
			all = append(all, Point{p.X, points[i-1].Y})
		}
		all = append(all, p)
	}
	return all
}
