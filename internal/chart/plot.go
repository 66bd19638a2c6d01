package chart

import (
	"image/color"
	"math"
	"slices"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	textSize  = 12
	titleSize = 17
)

// style returns a text style. Its typeface has the widths of Arial, so an SVG has the right layout
// without it.
func style(size vg.Length, weight font.Weight, c color.Color) text.Style {
	return text.Style{
		Color: c, Handler: plot.DefaultTextHandler,
		Font: plotfont.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size},
	}
}

// newPlot returns the axes and the grid.
func newPlot(x, y scale, names bool) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []struct {
		*plot.Axis
		scale
		color color.Color
	}{{&p.X, x, faint}, {&p.Y, y, mark}} {
		a.Min, a.Max, a.Scale, a.Tick.Marker = a.low, a.high, a.kind, plot.ConstantTicks(a.marks)
		a.Padding, a.LineStyle, a.Tick.LineStyle = 0, draw.LineStyle{}, hair(rule)
		a.Tick.Length = 6
		label := style(textSize, font.WeightNormal, a.color)
		label.XAlign, label.YAlign = a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = label
	}
	p.X.LineStyle = hair(faint)
	grid := &plotter.Grid{Horizontal: hair(rule)}
	if !names {
		grid.Vertical = hair(rule)
	}
	p.Add(grid)
	return p
}

// only hides a plotter's range and padding from the plot, because the axes have their own.
type only struct{ plot.Plotter }

func hair(c color.Color) draw.LineStyle { return draw.LineStyle{Color: c, Width: 1} }

// line returns the line style of a series.
func (l *layer) line() draw.LineStyle {
	s := draw.LineStyle{Color: l.color, Width: 1.75}
	switch l.Dash {
	case Dashed:
		s.Dashes = []vg.Length{7, 4}
	case Dotted:
		s.Dashes, s.Width = []vg.Length{2, 2.5}, 2
	case Solid:
	}
	return s
}

func (l *layer) dot() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.color, Radius: 2.75, Shape: draw.CircleGlyph{}}
}

// add adds the series to the plot, areas first, and returns the legend symbols of each.
func (c *Chart) add(p *plot.Plot, layers []layer, area draw.Canvas) ([][]plot.Thumbnailer, error) {
	keys := make([][]plot.Thumbnailer, len(layers))
	var areas, lines, dots []plot.Plotter
	for i := range layers {
		l := &layers[i]
		if l.Kind == Bar {
			continue
		}
		if l.Kind == Area {
			keys[i] = append(keys[i], &plotter.Polygon{Color: fade(l.color)})
		}
		keys[i] = append(keys[i], &plotter.Line{LineStyle: l.line()})
		for _, piece := range c.pieces(l) {
			if len(piece) == 1 || l.Dots {
				dots = append(dots, only{&plotter.Scatter{XYs: xys(piece), GlyphStyle: l.dot()}})
			}
			under := l.under
			if l.Step {
				piece, under = steps(piece), steps(under)
			}
			if l.Kind == Area {
				areas = append(areas, only{&plotter.Polygon{XYs: []plotter.XYs{xys(ring(piece, under, p.Y.Min))}, Color: fade(l.color)}})
			}
			lines = append(lines, only{&plotter.Line{XYs: xys(piece), LineStyle: l.line()}})
		}
	}
	p.Add(areas...)
	bars, err := c.addBars(p, layers, area)
	if err != nil {
		return nil, err
	}
	for i, b := range bars {
		keys[i] = append(keys[i], b)
	}
	p.Add(lines...)
	p.Add(dots...)
	p.Add(c.notes()...)
	return keys, nil
}

// ring is the outline of an area.
func ring(over, under []Point, bottom float64) []Point {
	if under == nil {
		under = []Point{{over[0].X, bottom}, {over[len(over)-1].X, bottom}}
	}
	below := slices.Clone(under)
	slices.Reverse(below)
	return append(slices.Clone(over), below...)
}

func xys(points []Point) plotter.XYs {
	all := make(plotter.XYs, len(points))
	for i, p := range points {
		all[i] = plotter.XY(p)
	}
	return all
}

// addBars adds the series of bars: side by side above their names, or stacked.
func (c *Chart) addBars(p *plot.Plot, layers []layer, area draw.Canvas) (map[int]*plotter.BarChart, error) {
	bars, side := map[int]*plotter.BarChart{}, 0
	for _, l := range layers {
		if l.Kind == Bar {
			side++
		}
	}
	if side == 0 {
		return bars, nil
	}
	if c.Stacked {
		side = 1
	}
	place := p.DataCanvas(area).Size().X / vg.Length(p.X.Max-p.X.Min)
	width := min(0.75*place/vg.Length(side), 60)
	var last *plotter.BarChart
	n := 0
	for i, l := range layers {
		if l.Kind != Bar {
			continue
		}
		b, err := plotter.NewBarChart(heights(l.Points, len(c.X.Names)), width)
		if err != nil {
			return nil, err
		}
		b.Color, b.LineStyle = l.color, draw.LineStyle{}
		if c.Stacked && last != nil {
			b.StackOn(last)
		} else {
			b.Offset = width * (vg.Length(n) - vg.Length(side-1)/2)
		}
		p.Add(only{b})
		bars[i], last = b, b
		n++
	}
	return bars, nil
}

// heights returns the values of a series at each name, 0 if it has no value there.
func heights(points []Point, names int) plotter.Values {
	all := make(plotter.Values, names)
	for _, p := range points {
		if i := int(p.X); i >= 0 && i < names && !math.IsNaN(p.Y) && !math.IsInf(p.Y, 0) {
			all[i] = p.Y
		}
	}
	return all
}

// notes returns the texts in the chart.
func (c *Chart) notes() (all []plot.Plotter) {
	for _, n := range c.Notes {
		s := style(textSize, font.WeightNormal, ink)
		if n.Color != nil {
			s.Color = n.Color
		}
		s.YAlign = draw.YCenter
		s.XAlign = map[Align]draw.XAlignment{Start: draw.XLeft, Middle: draw.XCenter, End: draw.XRight}[n.Align]
		all = append(all, only{&plotter.Labels{XYs: xys([]Point{n.At}), Labels: []string{printable(n.Text)}, TextStyle: []text.Style{s}}})
	}
	return all
}
