package chart

import (
	"cmp"
	"math"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lengths of the layout; a pixel of the SVG is a point.
const (
	margin       = 12
	titleHeight  = 34
	subHeight    = 18 // of the subtitle
	unitHeight   = 22 // of the label of the Y axis, above it
	axisHeight   = 20 // of the labels of the X axis
	keyWidth     = 24
	legendRow    = 19
	legendIndent = keyWidth + 8
)

// page is a chart with its scales and sizes, ready to be drawn.
type page struct {
	*Chart
	layers                []layer
	x, y                  scale
	width, height, legend vg.Length
	columns               int
}

// pages lays out charts. Charts with the same Y label get the same scale.
func pages(charts ...*Chart) (all []page, width, height vg.Length, err error) {
	values := map[string]span{}
	for _, c := range charts {
		p := page{Chart: c, width: 800}
		var x, y span
		if p.layers, x, y, err = c.layers(); err != nil {
			return nil, 0, 0, err
		}
		p.x = c.X.horizontal(x, int(p.width/85))
		common, ok := values[c.Y.Label]
		if !ok {
			common = noSpan()
		}
		values[c.Y.Label] = common.with(y.low).with(y.high)
		p.measure()
		p.height = 2 * vg.Length(math.Ceil(p.height.Points()/2)) // whole pixels
		all = append(all, p)
		width, height = max(width, p.width), height+p.height
	}
	if len(all) == 0 {
		return nil, 0, 0, ErrNothing
	}
	for i := range all {
		all[i].y = all[i].Y.vertical(values[all[i].Y.Label])
	}
	return all, width, height, nil
}

// measure computes the height. The height of the legend depends on the names of the series.
func (p *page) measure() {
	p.height = unitHeight + vg.Length(cmp.Or(p.Height, 270)) + axisHeight + margin
	if p.xLabel() != "" {
		p.height += legendRow
	}
	p.height += p.head()
	widest, named := vg.Length(0), 0
	label := style(textSize, font.WeightNormal, ink)
	for _, s := range p.Series {
		if s.Name != "" {
			widest = max(widest, label.Width(s.Name))
			named++
		}
	}
	if named == 0 {
		return
	}
	p.columns = max(1, min(named, int((p.width-6*margin)/(widest+legendIndent+margin))))
	rows := (named + p.columns - 1) / p.columns
	p.legend = vg.Length(rows)*legendRow + margin/2
	p.height += p.legend
}

// head is the height of title and subtitle.
func (p *page) head() (height vg.Length) {
	if p.Title != "" {
		height += titleHeight
	}
	if p.Subtitle != "" {
		height += subHeight
	}
	return height
}

// draw draws the page.
func (p *page) draw(c draw.Canvas) {
	area := draw.Crop(c, margin, -2*margin, margin+p.legend, -unitHeight-p.head())
	if p.xLabel() != "" {
		area.Min.Y += legendRow
	}
	chart := newPlot(p.x, p.y)
	keys := p.add(chart, p.layers)
	chart.Draw(area)
	data := chart.DataCanvas(area).Rectangle

	small := style(textSize, font.WeightNormal, faint)
	c.FillText(small, vg.Point{X: area.Min.X, Y: area.Max.Y + 6}, p.Y.Label)
	right := small
	right.XAlign = draw.XRight
	c.FillText(right, vg.Point{X: data.Max.X, Y: area.Min.Y - legendRow + 4}, p.xLabel())
	p.drawTitle(c, data.Min.X)
	p.drawLegend(c, data.Min.X, keys)
}

// xLabel returns the label of the X axis. A time axis is labelled as UTC.
func (p *page) xLabel() string {
	if p.X.Label == "" && p.X.Scale == Time {
		return "UTC"
	}
	return p.X.Label
}

func (p *page) drawTitle(c draw.Canvas, left vg.Length) {
	c.FillText(style(titleSize, font.WeightBold, ink), vg.Point{X: left, Y: c.Max.Y - 26}, p.Title)
	c.FillText(style(textSize, font.WeightNormal, faint), vg.Point{X: left, Y: c.Max.Y - p.head() + 7}, p.Subtitle)
}

func (p *page) drawLegend(c draw.Canvas, left vg.Length, keys [][]plot.Thumbnailer) {
	label := style(textSize, font.WeightNormal, ink)
	column := (c.Max.X - margin - left) / vg.Length(p.columns)
	place := 0
	for i, s := range p.Series {
		if s.Name == "" {
			continue
		}
		at := vg.Point{X: left + column*vg.Length(place%p.columns), Y: c.Min.Y + p.legend - legendRow*vg.Length(place/p.columns)}
		place++
		key := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: at.X, Y: at.Y - 1}, Max: vg.Point{X: at.X + keyWidth, Y: at.Y + 10},
		}}
		for _, k := range keys[i] {
			k.Thumbnail(&key)
		}
		c.FillText(label, vg.Point{X: at.X + legendIndent, Y: at.Y}, s.Name)
	}
}
