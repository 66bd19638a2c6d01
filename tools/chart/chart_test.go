package chart

import (
	"bytes"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"testing"
	"time"
)

var show = flag.String("show", "", "write the sample chart to this file, to look at")

func sample() *Chart {
	from := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	c := &Chart{
		Title: "Ratelimit Allowed Rate", Subtitle: "two instances, by client", Unit: "requests/s",
		From: from, To: from.Add(75 * time.Second), Gap: 10 * time.Second,
	}
	for i, name := range []string{"mobile-app", "shop", "partner", "integrator"} {
		l := Line{Name: name}
		for s := range 76 {
			v := 3*float64(i) + 2*math.Sin(float64(s)/7+float64(i)) + 3
			if i == 3 && s > 30 && s < 45 {
				v = math.NaN()
			}
			l.Points = append(l.Points, Point{from.Add(time.Duration(s) * time.Second), v})
		}
		c.Lines = append(c.Lines, l)
	}
	level := []Point{{from, 5}, {c.To, 5}}
	c.Lines = append(c.Lines, Line{Name: "default limit", Points: level, Limit: true, Color: LimitColor})
	return c
}

func TestPNG(t *testing.T) {
	var out bytes.Buffer
	if err := PNG(&out, sample()); err != nil {
		t.Fatal(err)
	}
	if *show != "" {
		if err := os.WriteFile(*show, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if got := picture.Bounds().Dx(); got != width {
		t.Errorf("the picture is %d pixels wide, want %d", got, width)
	}
	seen := map[color.Color]bool{}
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			seen[picture.At(x, y)] = true
		}
	}
	for _, c := range append(palette[:4:4], LimitColor, ink) {
		if !seen[c] {
			t.Errorf("nothing is drawn in %v", c)
		}
	}
	if seen[palette[4]] {
		t.Errorf("a fifth colour is drawn, for four lines")
	}
}

// Charts in one picture have the same scale, and the picture is as high as both.
func TestPNGOfTwoChartsIsComparable(t *testing.T) {
	low, high := sample(), sample()
	for i := range low.Lines[0].Points {
		low.Lines[0].Points[i].Value = 1
	}
	low.Lines, high.Lines = low.Lines[:1], high.Lines[:1]
	for i := range high.Lines[0].Points {
		high.Lines[0].Points[i].Value = 9
	}
	var one, both bytes.Buffer
	if err := errors.Join(PNG(&one, low), PNG(&both, low, high)); err != nil {
		t.Fatal(err)
	}
	single, pair := decode(t, &one), decode(t, &both)
	if got, want := pair.Bounds().Dy(), 2*single.Bounds().Dy(); got != want {
		t.Errorf("the picture of two is %d pixels high, want %d", got, want)
	}
	alone, beside := firstY(t, single), firstY(t, pair)
	if want := int(niceAxis(9).y(1)); beside <= alone || beside < want-2 || beside > want+2 {
		t.Errorf("1 is drawn at %d beside 9, want about %d; alone it is at %d", beside, want, alone)
	}
}

// firstY returns where the topmost pixel of the first line is.
func firstY(t *testing.T, picture image.Image) int {
	t.Helper()
	for y := range picture.Bounds().Dy() {
		if picture.At(width/2+7, y) == palette[0] {
			return y
		}
	}
	t.Fatal("the line is not drawn")
	return 0
}

func decode(t *testing.T, from *bytes.Buffer) image.Image {
	t.Helper()
	picture, err := png.Decode(from)
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

func TestNothingToDraw(t *testing.T) {
	noTime := sample()
	noTime.To = noTime.From
	for name, c := range map[string]*Chart{"no lines": {}, "no time": noTime} {
		if err := PNG(&bytes.Buffer{}, c); !errors.Is(err, ErrNothing) {
			t.Errorf("%s: PNG() = %v, want %v", name, err, ErrNothing)
		}
	}
}

func TestAxis(t *testing.T) {
	tests := map[string]struct {
		highest float64
		top     string
		marks   int
	}{
		"nothing":  {0, "1", 1},
		"NaN":      {math.NaN(), "1", 1},
		"infinite": {math.Inf(1), "1", 1},
		"small":    {0.17, "0.20", 4},
		"tenths":   {0.9, "1.0", 5},
		"one":      {1, "1.2", 6},
		"seven":    {7.3, "8", 4},
		"hundreds": {480, "500", 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := niceAxis(tt.highest)
			ticks := a.ticks()
			top := ticks[len(ticks)-1]
			if got := a.label(top); got != tt.top || a.marks != tt.marks {
				t.Errorf("niceAxis(%v) ends at %s after %d marks, want %s after %d", tt.highest, got, a.marks, tt.top, tt.marks)
			}
			if y := a.y(top); math.Abs(y-plotTop) > 1e-9 {
				t.Errorf("the highest mark is at %v, want %v", y, plotTop)
			}
			if y := a.y(0); math.Abs(y-plotBottom) > 1e-9 {
				t.Errorf("zero is at %v, want %v", y, plotBottom)
			}
		})
	}
}

func TestTimeStep(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		10 * time.Second: time.Second, 75 * time.Second: 10 * time.Second,
		10 * time.Minute: time.Minute, 1000 * time.Hour: 24 * time.Hour,
	} {
		if step, _ := timeStep(span); step != want {
			t.Errorf("timeStep(%v) = %v, want %v", span, step, want)
		}
	}
}
