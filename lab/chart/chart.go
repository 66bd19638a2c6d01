package chart

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Chart is a set of series over one X axis.
type Chart struct {
	Title, Subtitle string
	X, Y            Axis
	Series          []Series
	// Notes are drawn over the series.
	Notes []Note
	// Height is the height of the area between the axes. Zero means 270.
	Height float64
}

// Axis is one of a chart's axes.
type Axis struct {
	// Label says what the values are, with their unit.
	Label string
	Scale Scale
	// Min and Max are the range. If both are 0, the range is computed from the series.
	Min, Max float64
}

// Scale is how an axis places values.
type Scale int

// The scales.
const (
	Linear Scale = iota
	Log          // values of 0 or below are gaps
	Time         // for the X axis: values are seconds since 1970, shown in UTC
)

// Series is named points in the order of X.
type Series struct {
	Name   string // empty: left out of the legend
	Points []Point
	Kind   Kind
	// Step holds each value until the next point.
	Step bool
	// Dots marks each point.
	Dots bool
	Dash Dash
	// Gap is the longest X distance between connected points; 0 connects all.
	Gap float64
	// Color is the series' colour; nil means the next colour of the palette.
	Color color.Color
}

// Point is a value of Y at X. A NaN or infinite Y is a gap.
type Point struct{ X, Y float64 }

// At returns a point of a chart over time.
func At(t time.Time, y float64) Point { return Point{X: Seconds(t), Y: y} }

// Seconds converts a time to a value of a time axis.
func Seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Kind is how a series is drawn.
type Kind int

// The kinds.
const (
	Line Kind = iota
	Area      // a line, filled down to the axis
)

// Dash is the line style of a series.
type Dash int

// The dashes.
const (
	Solid Dash = iota
	Dashed
	Dotted
)

// Note is a text in the chart.
type Note struct {
	At   Point
	Text string
	// Align places the point at the start, the middle or the end of the text.
	Align Align
	// Color is the text colour; nil means the colour of other texts.
	Color color.Color
}

// Align is the side of a point that a text is on.
type Align int

// The alignments.
const (
	Start Align = iota
	Middle
	End
)

// ErrNothing is returned for a chart without values.
var ErrNothing = errors.New("chart: there is nothing to draw")

// Write writes the chart to a file, in the format of its extension: .png or .svg.
func (c *Chart) Write(path string) error { return Write(path, c) }

// Write writes charts to a file, one above the other, in the format of its extension: .png or .svg.
// Charts with the same Y label get the same scale, to make them comparable.
func Write(path string, charts ...*Chart) error {
	encode, ok := map[string]func(io.Writer, ...*Chart) error{".png": PNG, ".svg": SVG}[filepath.Ext(path)]
	if !ok {
		return fmt.Errorf("chart: write %s: the extension is neither .png nor .svg", path)
	}
	var picture bytes.Buffer
	if err := encode(&picture, charts...); err != nil {
		return err
	}
	if err := os.WriteFile(path, picture.Bytes(), 0o644); err != nil { //nolint:gosec // G306: as any picture
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}
