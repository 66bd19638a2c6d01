package chart

import (
	"image/color"
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
func newPlot(x, y scale) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []struct {
		*plot.Axis
		scale
		color color.Color
	}{{&p.X, x, faint}, {&p.Y, y, faint}} {
		a.Min, a.Max, a.Scale, a.Tick.Marker = a.low, a.high, a.kind, plot.ConstantTicks(a.marks)
		a.Padding, a.LineStyle, a.Tick.LineStyle = 0, draw.LineStyle{}, hair(rule)
		a.Tick.Length = 6
		label := style(textSize, font.WeightNormal, a.color)
		label.XAlign, label.YAlign = a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = label
	}
	p.X.LineStyle = hair(faint)
	p.Add(&plotter.Grid{Horizontal: hair(rule), Vertical: hair(rule)})
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
func (c *Chart) add(p *plot.Plot, layers []layer) [][]plot.Thumbnailer {
	keys := make([][]plot.Thumbnailer, len(layers))
	var areas, lines, dots []plot.Plotter
	for i := range layers {
		l := &layers[i]
		if l.Kind == Area {
			keys[i] = append(keys[i], &plotter.Polygon{Color: fade(l.color)})
		}
		keys[i] = append(keys[i], &plotter.Line{LineStyle: l.line()})
		for _, piece := range c.pieces(l) {
			if len(piece) == 1 || l.Dots {
				dots = append(dots, only{&plotter.Scatter{XYs: xys(piece), GlyphStyle: l.dot()}})
			}
			if l.Step {
				piece = steps(piece)
			}
			if l.Kind == Area {
				areas = append(areas, only{&plotter.Polygon{XYs: []plotter.XYs{xys(ring(piece, p.Y.Min))}, Color: fade(l.color)}})
			}
			lines = append(lines, only{&plotter.Line{XYs: xys(piece), LineStyle: l.line()}})
		}
	}
	p.Add(areas...)
	p.Add(lines...)
	p.Add(dots...)
	p.Add(c.notes()...)
	return keys
}

// ring is the outline of an area.
func ring(over []Point, bottom float64) []Point {
	return append(slices.Clone(over), Point{over[len(over)-1].X, bottom}, Point{over[0].X, bottom})
}

func xys(points []Point) plotter.XYs {
	all := make(plotter.XYs, len(points))
	for i, p := range points {
		all[i] = plotter.XY(p)
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
		all = append(all, only{&plotter.Labels{XYs: xys([]Point{n.At}), Labels: []string{n.Text}, TextStyle: []text.Style{s}}})
	}
	return all
}
