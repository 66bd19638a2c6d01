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

// Chart is series over one X axis.
type Chart struct {
	Title, Subtitle string
	X, Y            Axis
	Series          []Series
	// Notes are drawn over the series.
	Notes []Note
	// Stacked draws each area and each bar on those before it, which must have the same X.
	Stacked bool
	// Width and Height are those of the picture and of the area between the axes. Zero means 800 and 270.
	Width, Height float64
}

// Axis is one of a chart's axes.
type Axis struct {
	// Label says what the values are, with their unit.
	Label string
	Scale Scale
	// Min and Max are the range. If both are 0, it is as the series need it.
	Min, Max float64
	// Names makes the values 0, 1, 2, … of the X axis names, in as many lines as they have.
	Names []string
}

// Scale is how an axis places values.
type Scale int

// The scales.
const (
	Linear Scale = iota
	Log          // has no place for values of 0 or below: they are gaps
	Time         // of the X axis: values are seconds since 1970, and written as UTC
)

// Series is named points in the order of X.
type Series struct {
	Name   string // empty: not in the legend
	Points []Point
	Kind   Kind
	// Step keeps each value until the next point.
	Step bool
	// Dots marks each point.
	Dots bool
	Dash Dash
	// Gap is the longest distance of X that is joined; 0 joins all.
	Gap float64
	// Color is the next one of the palette if nil.
	Color color.Color
}

// Point is a value of Y at X. If Y is NaN or infinite, it is a gap.
type Point struct{ X, Y float64 }

// At is a point of a chart over time.
func At(t time.Time, y float64) Point { return Point{X: Seconds(t), Y: y} }

// Seconds is a time on an axis.
func Seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Kind is how a series is drawn.
type Kind int

// The kinds.
const (
	Line Kind = iota
	Area      // a line, filled down to the axis
	Bar       // beside those of other series; its chart has names
)

// Dash is how a line is broken up.
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
	// Align is where the point is: at the start of the text, in its middle or at its end.
	Align Align
	// Color is that of other texts if nil.
	Color color.Color
}

// Align is on which side of a point a text is.
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

// Write writes charts to a file, one above the other, in the format of its extension: .png or .svg. Those
// with the same label of Y have the same scale, so that they can be compared.
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
