package chart

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// dpi makes a picture of the default width 1200 pixels wide.
const dpi = 108

// PNG writes charts to w, one above the other. Charts with the same Y label get the same scale.
func PNG(w io.Writer, charts ...*Chart) error {
	all, width, height, err := pages(false, charts...)
	if err != nil {
		return err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(ground))
	if err := drawPages(draw.New(canvas), all); err != nil {
		return err
	}
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// SVG writes charts to w as PNG does. The picture has a white background, which keeps it readable
// on dark pages.
func SVG(w io.Writer, charts ...*Chart) error {
	all, width, height, err := pages(false, charts...)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(width, height)
	c := draw.New(canvas)
	c.SetColor(ground)
	c.Fill(c.Path())
	if err := drawPages(c, all); err != nil {
		return err
	}
	titles := make([]string, len(all))
	for i, p := range all {
		titles[i] = printable(p.Title)
	}
	picture, err := svg(canvas, `xmlns="http://www.w3.org/2000/svg" role="img"`, "<title>"+html.EscapeString(strings.Join(titles, "; "))+"</title>")
	if err != nil {
		return err
	}
	_, err = w.Write(picture)
	return err
}

func drawPages(c draw.Canvas, all []page) error {
	top := c.Max.Y
	for _, p := range all {
		part := c
		part.Max.Y = top
		top -= p.height
		part.Min.Y = top
		if _, err := p.draw(part); err != nil {
			return err
		}
	}
	return nil
}

// svg returns the drawing in a root element of its own, because gonum's has a fixed size in points.
// If gonum's font is not installed, a font with the same widths replaces it.
func svg(canvas *vgsvg.Canvas, attributes, title string) ([]byte, error) {
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return nil, err
	}
	begin := bytes.Index(drawn.Bytes(), []byte("<g "))
	if begin < 0 {
		return nil, errors.New("chart: gonum's SVG has no group")
	}
	width, height := canvas.Size()
	head := fmt.Sprintf(`<svg %s viewBox="0 0 %g %g" font-family="Liberation Sans,Arial,Helvetica,sans-serif" stroke-linejoin="round">%s`+"\n",
		attributes, width.Points(), height.Points(), title)
	body := strings.NewReplacer(
		"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
		"font-family:Liberation Sans;font-variant:normal;font-weight:bold;font-style:normal;", "font-weight:bold;",
	).Replace(drawn.String()[begin:])
	return []byte(head + body), nil
}

// Inline is a chart as an element of a page.
type Inline struct {
	// SVG has no title and no legend. Its colours are CSS variables of the page: --ink, --faint,
	// --rule, --mark (values at the Y axis, from the lowest) and, for series 0, --series-0. A page
	// can find, colour and hide a series by [style*="--series-0)"].
	SVG template.HTML
	// Left, Right, Top and Bottom are the edges of the data, in units of the SVG's view box.
	Left, Right, Top, Bottom float64
	// MinX, MaxX, MinY and MaxY are the values at these edges.
	MinX, MaxX, MinY, MaxY float64
}

// Inline returns the chart as an element of a page. Names are escaped. It has no name for screen
// readers; the enclosing element on the page has one.
func (c *Chart) Inline() (*Inline, error) {
	painted := *c
	painted.Series = append([]Series(nil), c.Series...)
	names := []string{hex(ink), "var(--ink)", hex(faint), "var(--faint)", hex(mark), "var(--mark)", hex(rule), "var(--rule)"}
	for i := range painted.Series {
		// Steps of four, because the colours of translucent areas are rounded.
		mark := color.RGBA{R: 0xfe, G: uint8(i >> 6), B: uint8(i << 2), A: 0xff}
		painted.Series[i].Color = mark
		variable := fmt.Sprintf("var(--series-%d)", i)
		names = append(names, hex(mark), variable, hex(fade(mark)), variable)
	}
	all, width, height, err := pages(true, &painted)
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(width, height)
	data, err := all[0].draw(draw.New(canvas))
	if err != nil {
		return nil, err
	}
	picture, err := svg(canvas, `aria-hidden="true" focusable="false"`, "")
	if err != nil {
		return nil, err
	}
	x, y := all[0].x, all[0].y
	return &Inline{
		SVG:  template.HTML(strings.NewReplacer(names...).Replace(string(picture))), //nolint:gosec // G203: gonum escapes the texts
		Left: data.Min.X.Points(), Right: data.Max.X.Points(),
		Top: (height - data.Max.Y).Points(), Bottom: (height - data.Min.Y).Points(),
		MinX: x.low, MaxX: x.high, MinY: y.low, MaxY: y.high,
	}, nil
}

// hex writes a colour as gonum does, including its rounding.
func hex(c color.Color) string {
	r, g, b, a := c.RGBA()
	part := func(v uint32) int { return int(float64(v) * (255 / float64(a))) }
	return fmt.Sprintf("#%02X%02X%02X", part(r), part(g), part(b))
}
