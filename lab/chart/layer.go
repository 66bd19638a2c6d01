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
}

// layers returns the series and the range of their values.
func (c *Chart) layers() (all []layer, x, y span, err error) {
	x, y = noSpan(), noSpan()
	for _, a := range []Axis{c.X, c.Y} {
		if a.Scale == Log && a.Min != a.Max && a.Min <= 0 {
			return nil, x, y, fmt.Errorf("chart: a logarithmic axis cannot begin at %v", a.Min)
		}
	}
	for i, color := range c.colors() {
		s := &c.Series[i]
		for _, p := range s.Points {
			if c.drawable(p) {
				x, y = x.with(p.X), y.with(p.Y)
			}
		}
		all = append(all, layer{Series: s, color: color})
	}
	if x.empty() {
		return nil, x, y, ErrNothing
	}
	return all, x, y, nil
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
	for _, p := range l.Points {
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
