package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/lab/chart"
)

var show = flag.String("show", "", "write the sample charts to this directory, to look at")

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

// areas is a chart of areas over each other.
func areas() *chart.Chart {
	c := &chart.Chart{
		Title: "What became of the requests", X: chart.Axis{Scale: chart.Time}, Y: chart.Axis{Label: "requests a minute"},
	}
	for i, name := range []string{"admitted", "delayed", "denied"} {
		s := chart.Series{Name: name, Kind: chart.Area, Step: true}
		if i == 2 {
			s.Color = chart.Red
		}
		for hour := range 49 {
			s.Points = append(s.Points, chart.At(noon.Add(time.Duration(hour)*time.Hour), 1e5*(3+math.Sin(float64(hour)/4+float64(i)))))
		}
		c.Series = append(c.Series, s)
	}
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

func samples() map[string][]*chart.Chart {
	return map[string][]*chart.Chart{
		"lines": {overTime()}, "areas": {areas()}, "log": {logarithmic()}, "two": {overTime(), overTime()},
	}
}

// TestTheSameBytes: a picture that is drawn again does not change its file.
func TestTheSameBytes(t *testing.T) {
	t.Parallel()
	dir := *show
	if dir == "" {
		dir = t.TempDir()
	}
	for name, charts := range samples() {
		for _, extension := range []string{".png", ".svg"} {
			path := filepath.Join(dir, name+extension)
			check.OK(t, chart.Write(path, charts...))
			first, err := os.ReadFile(path)
			check.OK(t, err)
			check.OK(t, chart.Write(path, samples()[name]...))
			second, err := os.ReadFile(path)
			check.OK(t, err)
			if !bytes.Equal(first, second) {
				t.Errorf("%s is another file the second time", path)
			}
		}
	}
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

func TestEverySeriesIsDrawnInItsColour(t *testing.T) {
	t.Parallel()
	picture := draw(t, overTime())
	check.Equal(t, "width", picture.Bounds().Dx(), 1200)
	seen := map[color.Color]bool{}
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			seen[picture.At(x, y)] = true
		}
	}
	for i, c := range []color.Color{chart.Palette(0), chart.Palette(1), chart.Palette(2), chart.Palette(3), chart.Red} {
		if !seen[c] {
			t.Errorf("series %d is not drawn in its colour, %v", i, c)
		}
	}
	if seen[chart.Palette(4)] {
		t.Error("a fifth colour of the palette is drawn, for four series without a colour of their own")
	}
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

const hostile = "</text><script>alert(1)</script>\x00\x1b[31m\u202e\xff\"'&amp;"

// TestHostileNames: what logs call their clients neither ends a text nor the XML.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	c := overTime()
	c.Title, c.Subtitle, c.X.Label, c.Y.Label, c.Series[0].Name = hostile, hostile, hostile, hostile, hostile
	c.Notes = []chart.Note{{At: c.Series[0].Points[0], Text: hostile}}
	var out strings.Builder
	check.OK(t, chart.SVG(&out, c))
	check.OK(t, chart.PNG(&bytes.Buffer{}, c))
	elements, texts := map[string]bool{}, 0
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		check.OK(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local] = true
		case xml.CharData:
			if strings.HasPrefix(string(token), "</text><script>alert(1)</script>\ufffd\ufffd[31m\ufffd\ufffd\"'&amp;") {
				texts++
			}
		}
	}
	check.Equal(t, "elements", elements, map[string]bool{"svg": true, "title": true, "g": true, "path": true, "text": true})
	check.Equal(t, "texts", texts, 7)
}
