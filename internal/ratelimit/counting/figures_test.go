//go:build !race

package counting_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

var update = flag.Bool("update", false, "write the figures of docs/rate-limits.md anew")

const guide = "../../../docs/rate-limits.md"

// kind is an algorithm with its frames, as in the comparison of the guide.
type kind struct {
	algorithm ratelimit.Algorithm
	frames    int
}

func (k kind) String() string {
	if k.algorithm != ratelimit.Sliding {
		return fmt.Sprintf("`%s`", k.algorithm)
	}
	return fmt.Sprintf("`%s`, frames: %d", k.algorithm, k.frames)
}

var kinds = []kind{
	{ratelimit.Fixed, 1},
	{ratelimit.Weighted, 1},
	{ratelimit.Sliding, 1},
	{ratelimit.Sliding, 2},
	{ratelimit.Sliding, 6},
	{ratelimit.Sliding, 60},
}

const (
	figureLimit  = 100
	figureWindow = time.Minute
)

// figures compare a limit of 100 per minute with an exact log of the same requests.
type figures struct {
	worst     float64 // of the limit, in the worst 60 seconds
	tooStrict float64 // share of the denied requests that an exact log would have admitted
}

// measure sends the traffic to one key. Times are in milliseconds, starting at a full hour.
func measure(t *testing.T, k kind, traffic []int64) (f figures) {
	t.Helper()
	l := ratelimit.NewLimit("l", figureLimit, figureWindow)
	l.Algorithm, l.Frames = k.algorithm, k.frames
	s := ratelimit.DefaultSettings()
	s.Default.User = []ratelimit.Limit{l}
	policies, err := ratelimit.Compile(s)
	check.OK(t, err)
	c, key := counting.NewCounters(1), ratelimit.Key{ClientID: "c", Username: "u"}
	eff := policies.For("c")

	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var log []int64 // times of admitted requests
	first := 0      // index of the first of them inside the window
	denied := 0
	for _, at := range traffic {
		for first < len(log) && log[first] <= at-figureWindow.Milliseconds() {
			first++
		}
		full := len(log)-first >= figureLimit
		d := c.Take(begin.Add(time.Duration(at)*time.Millisecond), key, eff, 1)
		if d.Outcome == ratelimit.Allowed {
			log = append(log, at)
			f.worst = max(f.worst, float64(len(log)-first)/figureLimit)
			continue
		}
		denied++
		if !full {
			f.tooStrict++
		}
	}
	f.tooStrict /= float64(max(denied, 1))
	return f
}

// steady is traffic of twice the limit, at random times.
func steady() (out []int64) {
	r := rand.New(rand.NewPCG(1, 2))
	for at := 0.0; at < 1000*60_000; at += r.ExpFloat64() * 300 {
		out = append(out, int64(at))
	}
	return out
}

// bursts are bursts of 60 requests within five seconds. In three of four cases they are two minutes
// apart, otherwise half a minute.
func bursts() (out []int64) {
	r := rand.New(rand.NewPCG(1, 2))
	for at := int64(0); at < 1000*60_000; {
		for i := range int64(60) {
			out = append(out, at+i*5000/60)
		}
		at += 30_000 + r.Int64N(10_000)
		if r.IntN(4) > 0 {
			at += 90_000
		}
	}
	return out
}

// attack exploits the start of frames. It sends 100 requests in the last tenth of a second of a
// minute, then as many as pass during the next minute, then none for a minute.
func attack() (out []int64) {
	for round := range int64(10) {
		next := round*3*60_000 + 60_000
		for at := next - 100; at < next; at++ {
			out = append(out, at)
		}
		for at := next; at < next+60_000; at += 10 {
			out = append(out, at)
		}
	}
	return out
}

// rush is a thousand requests in the first second of every third minute.
func rush() (out []int64) {
	for round := range int64(10) {
		for i := range int64(1000) {
			out = append(out, round*3*60_000+i)
		}
	}
	return out
}

// figuresTable returns the table of the guide: what the worst 60 seconds held, and which share of the
// denied requests an exact log would have admitted.
func figuresTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | twice the limit, at random | bursts of 60 | attack on frame boundaries | 1,000 at once |\n|---|---|---|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "| %s |", k)
		for _, traffic := range [][]int64{steady(), bursts(), attack(), rush()} {
			f := measure(t, k, traffic)
			fmt.Fprintf(&b, " %.0f %% (%.0f %%) |", 100*f.worst, 100*f.tooStrict)
		}
		b.WriteString("\n")
	}
	return b.String()
}

var section = regexp.MustCompile(`(?s)(<!-- figures: begin[^>]*-->\n)(.*)(<!-- figures: end -->)`)

// TestTheGuidesFigures computes every number in the guide's comparison. One goroutine does, so there
// is no race to find, and with the race detector it would take six times as long. To update them: go
// test ./internal/ratelimit/counting -run Guides -update
func TestTheGuidesFigures(t *testing.T) {
	text, err := os.ReadFile(guide)
	check.OK(t, err)
	table := figuresTable(t)
	if *update {
		out := section.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(table, "$", "$$")+"\n${3}")
		check.OK(t, os.WriteFile(guide, []byte(out), 0o600))
		return
	}
	found := section.FindStringSubmatch(string(text))
	if found == nil {
		t.Fatalf("%s has no place for the figures", guide)
	}
	if diff := cmp.Diff(strings.TrimSpace(table), strings.TrimSpace(found[2])); diff != "" {
		t.Fatalf("%s differs, run with -update (- computed, + committed):\n%s", guide, diff)
	}
}
