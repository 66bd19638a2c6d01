package chart_test

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/lab/chart"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// overTime is a chart of lines with a gap and a limit.
func overTime() *chart.Chart {
	c := &chart.Chart{
		Title: "Ratelimit Allowed Rate", Subtitle: "two instances, by client",
		X: chart.Axis{Scale: chart.Time}, Y: chart.Axis{Label: "requests/s"},
	}
	for i, name := range []string{"mobile-app", "shop", "partner", "integrator"} {
		s := chart.Series{Name: name, Gap: 10}
		for second := range 76 {
			v := 3*float64(i) + 2*math.Sin(float64(second)/7+float64(i)) + 3
			if i == 3 && second > 30 && second < 45 {
				v = math.NaN()
			}
			s.Points = append(s.Points, chart.At(noon.Add(time.Duration(second)*time.Second), v))
		}
		c.Series = append(c.Series, s)
	}
	level := []chart.Point{chart.At(noon, 5), chart.At(noon.Add(75*time.Second), 5)}
	c.Series = append(c.Series, chart.Series{Name: "default limit", Points: level, Dash: chart.Dashed, Color: chart.Red})
	return c
}

// logarithmic is a chart of costs over sizes.
func logarithmic() *chart.Chart {
	c := &chart.Chart{
		Title: "Cost of a cluster", X: chart.Axis{Label: "instances", Scale: chart.Log}, Y: chart.Axis{Label: "commands/s", Scale: chart.Log},
	}
	for i, name := range []string{"in all", "each", "plain interval"} {
		s := chart.Series{Name: name, Dots: true}
		if i == 2 {
			s.Dash = chart.Dotted
		}
		for _, n := range []float64{1, 3, 10, 30, 100} {
			s.Points = append(s.Points, chart.Point{X: n, Y: 20 * math.Pow(n, float64(i)/2)})
		}
		c.Series = append(c.Series, s)
	}
	c.Series[1].Points[0].Y = 0 // has no place: a gap
	return c
}

// draw returns a chart as PNG.
func draw(t *testing.T, charts ...*chart.Chart) image.Image {
	t.Helper()
	var out bytes.Buffer
	check.OK(t, chart.PNG(&out, charts...))
	picture, err := png.Decode(&out)
	check.OK(t, err)
	return picture
}

// TestGap: between two points that are too far from each other, and around one that is no number, there is no line.
func TestGap(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		series chart.Series
		lines  int
	}{
		"none":                {chart.Series{Points: []chart.Point{{0, 1}, {1, 2}, {9, 3}}}, 1},
		"too far":             {chart.Series{Points: []chart.Point{{0, 1}, {1, 2}, {8, 3}, {9, 3}}, Gap: 5}, 2},
		"NaN":                 {chart.Series{Points: []chart.Point{{0, 1}, {1, 2}, {2, math.NaN()}, {3, 1}, {4, 2}}}, 2},
		"infinite":            {chart.Series{Points: []chart.Point{{0, 1}, {1, 2}, {2, math.Inf(1)}, {3, 1}, {4, 2}}}, 2},
		"alone, so it is dot": {chart.Series{Points: []chart.Point{{0, 1}, {1, 2}, {2, math.NaN()}, {3, 1}}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			check.OK(t, chart.SVG(&out, &chart.Chart{Series: []chart.Series{tt.series}}))
			check.Equal(t, "pieces", strings.Count(out.String(), "#0072B2"), tt.lines)
		})
	}
}

// TestChartsOfOnePictureAreComparable: they have the same scale.
func TestChartsOfOnePictureAreComparable(t *testing.T) {
	t.Parallel()
	level := func(y float64) *chart.Chart {
		return &chart.Chart{Title: "Level", Series: []chart.Series{{Name: "a", Points: []chart.Point{{0, y}, {10, y}}}}}
	}
	one, both := draw(t, level(1)), draw(t, level(1), level(9))
	check.Equal(t, "height", both.Bounds().Dy(), 2*one.Bounds().Dy())
	alone, beside := firstY(t, one), firstY(t, both)
	if beside < alone+100 {
		t.Errorf("1 is drawn at %d beside 9, and at %d alone: want it much lower", beside, alone)
	}
}

// firstY returns where the topmost pixel of the first line is.
func firstY(t *testing.T, picture image.Image) int {
	t.Helper()
	for y := range picture.Bounds().Dy() {
		if picture.At(picture.Bounds().Dx()/2+7, y) == chart.Palette(0) {
			return y
		}
	}
	t.Fatal("the line is not drawn")
	return 0
}

func TestWhatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	noValues := overTime()
	noValues.Series = []chart.Series{{Name: "a", Points: []chart.Point{{1, math.NaN()}}}}
	noPlace := logarithmic()
	noPlace.Series = []chart.Series{{Name: "a", Points: []chart.Point{{1, 0}}}}
	fromZero := logarithmic()
	fromZero.Y.Max = 100
	for name, tt := range map[string]struct {
		chart *chart.Chart
		says  string
	}{
		"log axis from 0": {fromZero, "cannot begin at 0"},
		"no series":       {&chart.Chart{}, chart.ErrNothing.Error()},
		"no values":       {noValues, chart.ErrNothing.Error()},
		"no place":        {noPlace, chart.ErrNothing.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.ErrorSays(t, chart.SVG(&bytes.Buffer{}, tt.chart), tt.says)
		})
	}
	check.ErrorSays(t, chart.PNG(&bytes.Buffer{}), chart.ErrNothing.Error())
	check.ErrorSays(t, overTime().Write("chart.gif"), "neither .png nor .svg")
	path := filepath.Join(t.TempDir(), "chart.png")
	check.ErrorSays(t, noValues.Write(path), chart.ErrNothing.Error())
	_, err := os.Stat(path)
	check.ErrorIs(t, err, os.ErrNotExist)
}
