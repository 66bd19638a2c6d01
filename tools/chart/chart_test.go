package chart

import (
	"bytes"
	"flag"
	"image/color"
	"image/png"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	require.NoError(t, sample().PNG(&out))
	if *show != "" {
		require.NoError(t, os.WriteFile(*show, out.Bytes(), 0o644))
	}
	picture, err := png.Decode(&out)
	require.NoError(t, err)
	require.Equal(t, width, picture.Bounds().Dx())
	seen := map[color.Color]bool{}
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			seen[picture.At(x, y)] = true
		}
	}
	for _, c := range append(palette[:4:4], LimitColor, ink) {
		require.True(t, seen[c], "nothing is drawn in %v", c)
	}
	require.False(t, seen[palette[4]])
}

func TestNothingToDraw(t *testing.T) {
	require.ErrorIs(t, (&Chart{}).PNG(&bytes.Buffer{}), ErrNothing)
	c := sample()
	c.To = c.From
	require.ErrorIs(t, c.PNG(&bytes.Buffer{}), ErrNothing)
}

func TestAxis(t *testing.T) {
	tests := map[string]struct {
		highest float64
		top     string
		marks   int
	}{
		"nothing":   {0, "1", 1},
		"not known": {math.NaN(), "1", 1},
		"infinite":  {math.Inf(1), "1", 1},
		"small":     {0.17, "0.20", 4},
		"tenths":    {0.9, "1.0", 5},
		"one":       {1, "1.2", 6},
		"seven":     {7.3, "8", 4},
		"hundreds":  {480, "500", 5},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := niceAxis(tt.highest)
			ticks := a.ticks()
			require.Equal(t, tt.top, a.label(ticks[len(ticks)-1]))
			require.Equal(t, tt.marks, a.marks)
			require.InDelta(t, plotTop, a.y(ticks[len(ticks)-1]), 1e-9)
			require.InDelta(t, plotBottom, a.y(0), 1e-9)
		})
	}
}

func TestTimeStep(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		10 * time.Second: time.Second, 75 * time.Second: 10 * time.Second,
		10 * time.Minute: time.Minute, 1000 * time.Hour: 24 * time.Hour,
	} {
		step, _ := timeStep(span)
		require.Equal(t, want, step, span)
	}
}
