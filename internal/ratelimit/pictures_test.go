package ratelimit_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/ratelimit"
)

// svg is a picture in the making. Its colours are readable on white and, behind a white ground, on
// dark pages.
type svg struct{ b strings.Builder }

func (s *svg) add(format string, args ...any) { fmt.Fprintf(&s.b, format+"\n", args...) }

func newSVG(width, height int, title string) *svg {
	s := &svg{}
	s.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="14" role="img">`, width, height)
	s.add(`<title>%s</title>`, title)
	s.add(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	return s
}

func (s *svg) text(x, y float64, anchor, fill, text string) {
	s.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`, x, y, anchor, fill, text)
}

func (s *svg) done() string { return s.b.String() + "</svg>\n" }

const (
	ink, grey, blue, orange, green, red = "#222", "#888", "#2b6cb0", "#c05621", "#2f855a", "#c53030"
)

// windowPicture draws the worked example: 7 per minute, 5 and 3 counted, at 12:01:18.
func windowPicture() string {
	s := newSVG(760, 300, "The last 60 seconds at 12:01:18 cover 42 seconds of the frame from 12:00 and 18 of the frame from 12:01")
	const left, perSecond, base, unit = 60.0, 5.0, 210.0, 24.0
	x := func(second float64) float64 { return left + second*perSecond }
	// what counts
	s.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#ebf4ff"/>`, x(18), base-6*unit, x(78)-x(18), 6*unit)
	// the frames
	s.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#e2e8f0" stroke="%s"/>`, x(0), base-5*unit, x(18)-x(0), 5*unit, grey)
	s.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#90cdf4" stroke="%s"/>`, x(18), base-5*unit, x(60)-x(18), 5*unit, blue)
	s.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#fbd38d" stroke="%s"/>`, x(60), base-3*unit, x(78)-x(60), 3*unit, orange)
	s.text(x(39), base-5*unit/2+5, "middle", ink, "5 x 42/60 = 3.5")
	s.text(x(9), base-5*unit/2+5, "middle", grey, "1.5 gone")
	s.text(x(69), base-3*unit/2+5, "middle", ink, "3")
	// the axis
	s.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x(0)-20, base, x(120)+20, base, ink)
	for _, tick := range []struct {
		at    float64
		label string
	}{{0, "12:00:00"}, {60, "12:01:00"}, {120, "12:02:00"}} {
		s.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x(tick.at), base, x(tick.at), base+8, ink)
		s.text(x(tick.at), base+26, "middle", ink, tick.label)
	}
	// the window
	s.add(`<path d="M %.1f 58 v -12 H %.1f v 12" fill="none" stroke="%s" stroke-width="2"/>`, x(18), x(78), blue)
	s.text((x(18)+x(78))/2, 38, "middle", blue, "the last 60 seconds")
	s.add(`<line x1="%.1f" y1="58" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="4 3"/>`, x(78), x(78), base+8, red)
	s.text(x(78)+6, 76, "start", red, "now, 12:01:18")
	s.text(x(60)+6, 280, "start", ink, "estimate 3 + 3.5 = 6.5, limit 7: one more passes")
	s.text(x(30), 280, "middle", grey, "5 were counted")
	return s.done()
}

// decayPicture draws how the estimate forgets a burst, against the exact log.
func decayPicture(t *testing.T) string {
	t.Helper()
	s := newSVG(760, 380, "How the estimates forget 100 requests that came at 12:00:50")
	const left, top, width, height = 60.0, 40.0, 560.0, 280.0
	x := func(second float64) float64 { return left + second/150*width }
	y := func(n float64) float64 { return top + height - n/110*height }
	for _, n := range []float64{0, 50, 100} {
		s.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`, left, y(n), left+width, y(n))
		s.text(left-8, y(n)+5, "end", ink, fmt.Sprint(n))
	}
	for _, second := range []float64{0, 30, 60, 90, 120, 150} {
		s.add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x(second), y(0), x(second), y(0)+6, ink)
		s.text(x(second), y(0)+24, "middle", ink, time.Date(2026, 1, 1, 12, 0, int(second), 0, time.UTC).Format("15:04:05"))
	}
	s.text(left, 24, "start", ink, "Estimate after 100 requests at 12:00:50, limit 100 per minute")
	lines := []struct {
		kind   kind
		colour string
		at     float64 // where its label stands
	}{
		{kind{ratelimit.Fixed, 1}, grey, 12},
		{kind{ratelimit.Weighted, 1}, orange, 40},
		{kind{ratelimit.Sliding, 1}, blue, 68},
		{kind{ratelimit.Sliding, 6}, green, 96},
	}
	for _, l := range lines {
		s.add(`<path d="%s" fill="none" stroke="%s" stroke-width="2.5"/>`, trace(t, l.kind, x, y), l.colour)
		s.text(left+width+10, top+l.at, "start", l.colour, strings.Trim(strings.ReplaceAll(l.kind.String(), "`", ""), " "))
	}
	s.add(`<path d="M %.1f %.1f V %.1f H %.1f V %.1f" fill="none" stroke="%s" stroke-dasharray="5 4" stroke-width="2"/>`,
		x(50), y(0), y(100), x(110), y(0), red)
	s.text(left+width+10, top+124, "start", red, "exact log")
	return s.done()
}

// trace follows the estimate of one algorithm, a point each half second.
func trace(t *testing.T, k kind, x, y func(float64) float64) string {
	t.Helper()
	l := ratelimit.NewLimit("l", 100, time.Minute)
	l.Algorithm, l.Frames = k.algorithm, k.frames
	settings := ratelimit.DefaultSettings()
	settings.Default.User = []ratelimit.Limit{l}
	policies, err := ratelimit.Compile(settings)
	if err != nil {
		t.Fatal(err)
	}
	c, key := ratelimit.NewCounters(1), ratelimit.Key{ClientID: "c", Username: "u"}
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var path strings.Builder
	for half := range 301 {
		now := begin.Add(time.Duration(half) * time.Second / 2)
		if half == 100 {
			c.Take(now, key, policies.For("c"), 100)
		}
		estimate := 0.0
		for _, u := range c.Usage(now, key) {
			estimate = u.Estimate
		}
		command := "L"
		if half == 0 {
			command = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", command, x(float64(half)/2), y(estimate))
	}
	return path.String()
}

// TestTheGuidesPictures draws the pictures of the guide. To write them:
// go test ./internal/ratelimit -run Guides -update
func TestTheGuidesPictures(t *testing.T) {
	for name, picture := range map[string]string{
		"rate-limiting-window.svg": windowPicture(),
		"rate-limiting-decay.svg":  decayPicture(t),
	} {
		path := "../../docs/" + name
		if *update {
			if err := os.WriteFile(path, []byte(picture), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		committed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(picture, string(committed)); diff != "" {
			t.Fatalf("%s differs, run with -update (- drawn, + committed):\n%s", name, diff)
		}
	}
}
