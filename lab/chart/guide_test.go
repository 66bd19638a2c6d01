package chart_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/lab/chart"
)

// second is a point of a picture, in seconds after noon.
func second(s, y float64) chart.Point {
	return chart.At(noonOfGuide.Add(time.Duration(s*float64(time.Second))), y)
}

var (
	noonOfGuide = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

	update = flag.Bool("update", false, "write the pictures of the guide")
)

// windowPicture is the worked example: 7 per minute, 5 and 3 counted, at 12:01:18.
func windowPicture() *chart.Chart {
	frame := func(from, to, counted float64, color string) chart.Series {
		return chart.Series{Kind: chart.Area, Color: color, Points: []chart.Point{second(from, counted), second(to, counted)}}
	}
	note := func(s, y float64, text string) chart.Note {
		return chart.Note{At: second(s, y), Text: text, Anchor: "middle"}
	}
	window := chart.Palette(0)
	return &chart.Chart{
		Title:    "Estimate 3 + 3.5 = 6.5, limit 7: one more request passes",
		Subtitle: "at 12:01:18, the last 60 seconds cover 42 seconds of the 12:00 frame and 18 of the 12:01 frame",
		X:        chart.Axis{Kind: chart.Time, Max: chart.Seconds(noonOfGuide.Add(2 * time.Minute)), Min: chart.Seconds(noonOfGuide)},
		Y:        chart.Axis{Label: "requests per frame", Max: 7},
		Height:   200,
		Series: []chart.Series{
			frame(0, 18, 5, chart.Palette(6)),
			frame(18, 60, 5, window),
			frame(60, 78, 3, chart.Palette(1)),
			{Color: window, Points: []chart.Point{second(18, 5.5), second(18, 6), second(78, 6), second(78, 5.5)}},
			{Color: chart.Red, Dashes: chart.Dashed, Points: []chart.Point{second(78, 0), second(78, 6)}},
		},
		Notes: []chart.Note{
			note(9, 2.5, "1.5 gone"), note(39, 2.5, "5 x 42/60 = 3.5"), note(69, 1.5, "3"),
			{At: second(48, 6.5), Text: "the last 60 seconds", Anchor: "middle", Color: window},
			{At: second(79.5, 5), Text: "now, 12:01:18", Color: chart.Red},
		},
	}
}

// decayPicture shows how the estimate forgets a burst, compared with the exact log.
func decayPicture(t *testing.T) *chart.Chart {
	t.Helper()
	c := &chart.Chart{
		Title:    "The estimate after 100 requests at 12:00:50",
		Subtitle: "limit 100 per minute",
		X:        chart.Axis{Kind: chart.Time},
		Y:        chart.Axis{Label: "estimate", Max: 110},
	}
	for _, s := range []struct {
		name      string
		algorithm ratelimit.Algorithm
		frames    int
		color     string
	}{
		{"fixed", ratelimit.Fixed, 1, chart.Palette(6)},
		{"weighted", ratelimit.Weighted, 1, chart.Palette(1)},
		{"sliding, frames: 1", ratelimit.Sliding, 1, chart.Palette(0)},
		{"sliding, frames: 6", ratelimit.Sliding, 6, chart.Palette(2)},
	} {
		c.Series = append(c.Series, chart.Series{Name: s.name, Color: s.color, Points: trace(t, s.algorithm, s.frames)})
	}
	c.Series = append(c.Series, chart.Series{
		Name: "exact log", Color: chart.Red, Dashes: chart.Dashed,
		Points: []chart.Point{second(50, 0), second(50, 100), second(110, 100), second(110, 0)},
	})
	return c
}

// trace follows the estimate of one algorithm, with a point every half second.
func trace(t *testing.T, algorithm ratelimit.Algorithm, frames int) (points []chart.Point) {
	t.Helper()
	l := ratelimit.NewLimit("l", 100, time.Minute)
	l.Algorithm, l.Frames = algorithm, frames
	policy, err := ratelimit.Enforced(l, l)
	check.OK(t, err)
	c, key := counting.NewCounters(1), ratelimit.Key{ClientID: "c", Username: "u"}
	for half := range 301 {
		now := noonOfGuide.Add(time.Duration(half) * time.Second / 2)
		if half == 100 {
			c.Take(now, key, policy, 100)
		}
		estimate := 0.0
		for _, u := range c.Usage(now, key) {
			estimate = u.Estimate
		}
		points = append(points, chart.At(now, estimate))
	}
	return points
}

// TestTheGuidesPictures draws the pictures of the guide. To update them: go -C lab test ./chart -run
// Guides -update
func TestTheGuidesPictures(t *testing.T) {
	for name, picture := range map[string]*chart.Chart{
		"rate-limiting-window.svg": windowPicture(),
		"rate-limiting-decay.svg":  decayPicture(t),
	} {
		path := "../../docs/" + name
		if *update {
			check.OK(t, picture.Write(path))
			continue
		}
		drawn, err := chart.SVG(picture)
		check.OK(t, err)
		committed, err := os.ReadFile(path)
		check.OK(t, err)
		if diff := cmp.Diff(drawn, string(committed)); diff != "" {
			t.Fatalf("%s differs, run with -update (- drawn, + committed):\n%s", name, diff)
		}
	}
}
