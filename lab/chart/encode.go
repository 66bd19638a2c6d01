package chart

import (
	"bytes"
	"errors"
	"fmt"
	"html"
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
	all, width, height, err := pages(charts...)
	if err != nil {
		return err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(ground))
	drawPages(draw.New(canvas), all)
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// SVG writes charts to w as PNG does. The picture has a white background, which keeps it readable
// on dark pages.
func SVG(w io.Writer, charts ...*Chart) error {
	all, width, height, err := pages(charts...)
	if err != nil {
		return err
	}
	canvas := vgsvg.New(width, height)
	c := draw.New(canvas)
	c.SetColor(ground)
	c.Fill(c.Path())
	drawPages(c, all)
	titles := make([]string, len(all))
	for i, p := range all {
		titles[i] = p.Title
	}
	picture, err := svg(canvas, strings.Join(titles, "; "))
	if err != nil {
		return err
	}
	_, err = w.Write(picture)
	return err
}

func drawPages(c draw.Canvas, all []page) {
	top := c.Max.Y
	for _, p := range all {
		part := c
		part.Max.Y = top
		top -= p.height
		part.Min.Y = top
		p.draw(part)
	}
}

// svg returns the drawing in a root element of its own, because gonum's has a fixed size in points.
// If gonum's font is not installed, a font with the same widths replaces it.
func svg(canvas *vgsvg.Canvas, title string) ([]byte, error) {
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return nil, err
	}
	begin := bytes.Index(drawn.Bytes(), []byte("<g "))
	if begin < 0 {
		return nil, errors.New("chart: gonum's SVG has no group")
	}
	width, height := canvas.Size()
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %g %g" font-family="Liberation Sans,Arial,Helvetica,sans-serif" stroke-linejoin="round"><title>%s</title>`+"\n",
		width.Points(), height.Points(), html.EscapeString(title))
	body := strings.NewReplacer(
		"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "",
		"font-family:Liberation Sans;font-variant:normal;font-weight:bold;font-style:normal;", "font-weight:bold;",
	).Replace(drawn.String()[begin:])
	return []byte(head + body), nil
}
