package chart

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

var (
	ink     = color.RGBA{0x22, 0x26, 0x2e, 0xff}
	faint   = color.RGBA{0x6b, 0x72, 0x80, 0xff}
	gridInk = color.RGBA{0xe5, 0xe7, 0xeb, 0xff}

	// Okabe and Ito's palette, which stays distinct for the colour-blind, without yellow
	// (too faint on white) and red (for limits).
	palette = []color.Color{
		color.RGBA{0x00, 0x72, 0xb2, 0xff}, // blue
		color.RGBA{0xe6, 0x9f, 0x00, 0xff}, // orange
		color.RGBA{0x00, 0x9e, 0x73, 0xff}, // green
		color.RGBA{0xcc, 0x79, 0xa7, 0xff}, // purple
		color.RGBA{0x56, 0xb4, 0xe9, 0xff}, // sky
		color.RGBA{0x8c, 0x56, 0x4b, 0xff}, // brown
		color.RGBA{0x7f, 0x7f, 0x7f, 0xff}, // grey
	}
	// LimitColor is for the most important limit.
	LimitColor = color.RGBA{0xd5, 0x1d, 0x1d, 0xff}
)

// PaletteColor returns colour n of the palette, from 0; after the last one it starts over.
func PaletteColor(n int) color.Color { return palette[n%len(palette)] }

// xy is a place on the page, in pixels.
type xy struct{ x, y float64 }

// page is an image to draw lines and text on.
type page struct {
	image       *image.RGBA
	bold, small font.Face
}

func newPage(r image.Rectangle) (*page, error) {
	p := &page{image: image.NewRGBA(r)}
	draw.Draw(p.image, r, image.White, image.Point{}, draw.Src)
	var err error
	if p.bold, err = face(gobold.TTF, 24); err != nil {
		return nil, err
	}
	p.small, err = face(goregular.TTF, 15)
	return p, err
}

func face(ttf []byte, size float64) (font.Face, error) {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return nil, fmt.Errorf("chart: read font: %w", err)
	}
	f, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("chart: open font: %w", err)
	}
	return f, nil
}

// text writes s with its left end at x, on the line y.
func (p *page) text(s string, x, y int, f font.Face, c color.Color) {
	d := font.Drawer{Dst: p.image, Src: image.NewUniform(c), Face: f, Dot: fixed.P(x, y)}
	d.DrawString(s)
}

func (p *page) textRight(s string, x, y int, f font.Face, c color.Color) {
	p.text(s, x-font.MeasureString(f, s).Round(), y, f, c)
}

func (p *page) textCentred(s string, x, y int, f font.Face, c color.Color) {
	p.text(s, x-font.MeasureString(f, s).Round()/2, y, f, c)
}

// stroke draws a line through the points, with sharp corners rounded.
func (p *page) stroke(points []xy, thick float64, c color.Color) {
	if len(points) < 2 {
		return
	}
	points, box, r := p.around(points, thick)
	for i := 1; i < len(points); i++ {
		segment(r, points[i-1], points[i], thick/2)
	}
	for i := 1; i < len(points)-1; i++ {
		if sharp(points[i-1], points[i], points[i+1]) {
			disc(r, points[i], thick/2)
		}
	}
	r.Draw(p.image, box, image.NewUniform(c), image.Point{})
}

func (p *page) dot(at xy, radius float64, c color.Color) {
	points, box, r := p.around([]xy{at}, 2*radius)
	disc(r, points[0], radius)
	r.Draw(p.image, box, image.NewUniform(c), image.Point{})
}

// around returns the part of the page that a line through the points needs, a rasterizer of that
// size, and the points as seen from its corner. To rasterize the whole page for each line is slow.
func (p *page) around(points []xy, thick float64) (moved []xy, box image.Rectangle, r *vector.Rasterizer) {
	low, high := points[0], points[0]
	for _, at := range points {
		low = xy{math.Min(low.x, at.x), math.Min(low.y, at.y)}
		high = xy{math.Max(high.x, at.x), math.Max(high.y, at.y)}
	}
	edge := int(thick) + 2
	box = image.Rect(int(low.x)-edge, int(low.y)-edge, int(high.x)+edge, int(high.y)+edge).Intersect(p.image.Bounds())
	for _, at := range points {
		moved = append(moved, xy{at.x - float64(box.Min.X), at.y - float64(box.Min.Y)})
	}
	return moved, box, vector.NewRasterizer(box.Dx(), box.Dy())
}

// pattern is how a line is broken up: lengths in pixels.
type pattern struct{ on, off, thick float64 }

var (
	dashes = pattern{on: 10, off: 6, thick: 2.5}
	dots   = pattern{on: 3, off: 4, thick: 3}
)

// dash draws a broken line through the points.
func (p *page) dash(points []xy, as pattern, c color.Color) {
	if len(points) < 2 {
		return
	}
	points, box, r := p.around(points, as.thick)
	left, drawing := as.on, true
	for i := 1; i < len(points); i++ {
		from, to := points[i-1], points[i]
		for {
			length := math.Hypot(to.x-from.x, to.y-from.y)
			part := math.Min(left, length)
			next := to
			if part < length {
				next = xy{from.x + (to.x-from.x)*part/length, from.y + (to.y-from.y)*part/length}
			}
			if drawing {
				segment(r, from, next, as.thick/2)
			}
			if left -= part; left > 0 {
				break
			}
			drawing = !drawing
			left = as.on
			if !drawing {
				left = as.off
			}
			from = next
		}
	}
	r.Draw(p.image, box, image.NewUniform(c), image.Point{})
}

// segment adds one straight piece. All pieces have the same orientation, so that
// they do not cancel out where they overlap.
func segment(r *vector.Rasterizer, a, b xy, half float64) {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	if length == 0 {
		return
	}
	nx, ny := -(b.y-a.y)/length*half, (b.x-a.x)/length*half
	polygon(r, xy{a.x + nx, a.y + ny}, xy{a.x - nx, a.y - ny}, xy{b.x - nx, b.y - ny}, xy{b.x + nx, b.y + ny})
}

// sharp reports whether the line from a by b to c bends enough to leave a notch at b.
func sharp(a, b, c xy) bool {
	turn := math.Atan2(c.y-b.y, c.x-b.x) - math.Atan2(b.y-a.y, b.x-a.x)
	return math.Cos(turn) < 0.95
}

func disc(r *vector.Rasterizer, at xy, radius float64) {
	corners := make([]xy, 16)
	for i := range corners {
		angle := 2 * math.Pi * float64(i) / float64(len(corners))
		corners[i] = xy{at.x + radius*math.Cos(angle), at.y + radius*math.Sin(angle)}
	}
	polygon(r, corners...)
}

func polygon(r *vector.Rasterizer, corners ...xy) {
	r.MoveTo(float32(corners[0].x), float32(corners[0].y))
	for _, corner := range corners[1:] {
		r.LineTo(float32(corner.x), float32(corner.y))
	}
	r.ClosePath()
}
