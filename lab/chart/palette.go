package chart

import "image/color"

var (
	ink    = color.RGBA{0x22, 0x26, 0x2e, 0xff}
	faint  = color.RGBA{0x6b, 0x72, 0x80, 0xff}
	rule   = color.RGBA{0xe5, 0xe7, 0xeb, 0xff}
	ground = color.RGBA{0xff, 0xff, 0xff, 0xff}

	// Okabe and Ito's palette, which stays distinct for colour-blind people, without yellow (too
	// faint on white) and red (used for limits and denials).
	palette = []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, // blue
		{0xe6, 0x9f, 0x00, 0xff}, // orange
		{0x00, 0x9e, 0x73, 0xff}, // green
		{0xcc, 0x79, 0xa7, 0xff}, // purple
		{0x56, 0xb4, 0xe9, 0xff}, // sky
		{0x8c, 0x56, 0x4b, 0xff}, // brown
		{0x7f, 0x7f, 0x7f, 0xff}, // grey
	}
	// Red is for limits and denials.
	Red = color.RGBA{0xd5, 0x1d, 0x1d, 0xff}
)

// Palette returns colour n of the palette, counted from 0. It starts over after the last one.
func Palette(n int) color.Color { return palette[n%len(palette)] }

// colors returns the colour of each series. Only series without their own colour take one from the
// palette.
func (c *Chart) colors() []color.Color {
	all := make([]color.Color, len(c.Series))
	next := 0
	for i, s := range c.Series {
		if all[i] = s.Color; s.Color == nil {
			all[i] = Palette(next)
			next++
		}
	}
	return all
}

// fade returns a translucent colour, which keeps the grid visible.
func fade(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 0x59} //nolint:gosec // G115: shifted
}
