package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/lab/traffic"
)

// The phases last as long as asked for, all attacks occur alone and together, and the first and the
// last phase have none.
func TestPhases(t *testing.T) {
	all := phases(10*time.Minute, "")
	var sum time.Duration
	alone := map[attackKind]bool{}
	together := 0
	for _, p := range all {
		sum += p.length
		switch len(p.attacks) {
		case 1:
			alone[p.attacks[0]] = true
		case len(attackKinds()):
			together++
		}
	}
	if sum != 10*time.Minute {
		t.Errorf("the phases last %v", sum)
	}
	if len(alone) != len(attackKinds()) || together != 2 {
		t.Errorf("attacks alone: %v; all together: %d times", alone, together)
	}
	if len(all[0].attacks)+len(all[len(all)-1].attacks) != 0 {
		t.Error("an attack in the first or the last phase")
	}
	for _, p := range all[1:] {
		if two := phases(time.Minute, p.name); len(two) != 2 || two[0].name != all[0].name || two[1].name != p.name ||
			two[0].length+two[1].length != time.Minute {
			t.Errorf("phases of %q alone: %+v", p.name, two)
		}
	}
	if none := phases(time.Minute, "something else"); none != nil {
		t.Errorf("phases of an unknown name: %+v", none)
	}
}

func TestReport(t *testing.T) {
	f := figures{
		phase: phase{name: "sign-ins", length: time.Minute},
		good: append(requests(999, 1, 2*time.Millisecond),
			measurement{grant: clientcfg.RefreshToken, outcome: "200", took: 30 * time.Millisecond}),
		late:  []time.Duration{3 * time.Millisecond, time.Millisecond},
		syncs: []time.Duration{4 * time.Millisecond},
		samples: []sample{
			{rss: 1 << 30, collections: 10, paused: time.Second},
			{rss: 70 << 20, goroutines: 9, files: 12},
			{rss: 80 << 20, goroutines: 8, files: 11, collections: 15, paused: time.Second + 10*time.Millisecond},
		},
		cores:   cores{server: 0.5, attackers: 0.25, self: 0.05, others: 0.2, waited: 0.75},
		attacks: traffic.Summary{"sign-ins": {"503": 2, "400": 1}},
	}
	out := report(options{}, []figures{f})
	for _, want := range [][]string{
		{"sign-ins", "60", "1000", "1", "99.900", "2.0", "2.0", "2.0", "2.0", "30.0", "2.0", "30.0", "3.0", "3.0", "4.0"},
		{"sign-ins", "70", "80", "9", "12", "2.5", "2.0", "0.50", "0.75", "0.25", "0.05", "0.20"},
		strings.Fields("sign-ins: sign-ins: 400 x 1, 503 x 2"),
	} {
		if !hasRow(out, want) {
			t.Errorf("no row %q in\n%s", want, out)
		}
	}
	for _, want := range []string{"the embedded store", "50 good clients with 2 requests"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func hasRow(text string, want []string) bool {
	for line := range strings.Lines(text) {
		if cmp.Equal(strings.Fields(line), want) {
			return true
		}
	}
	return false
}

// The server reads its configuration without a complaint.
func TestServerConfig(t *testing.T) {
	text := serverConfig()
	file := filepath.Join(t.TempDir(), "soak.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got := len(c.RateLimit.Clients); got != goodCount+1 {
		t.Errorf("%d clients with limits of their own", got)
	}
}

// Usage is shown as cores, and what is neither of the server nor of the soak is of others.
func TestSince(t *testing.T) {
	const s = time.Second
	before := usage{at: time.Unix(10, 0), server: s, machine: 10 * s}
	after := usage{at: time.Unix(14, 0), server: 3 * s, waited: s, attackers: 2 * s, self: s, machine: 18 * s}
	want := cores{server: 0.5, waited: 0.25, attackers: 0.5, self: 0.25, others: 0.75}
	if got := after.since(before); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := before.since(before); got != (cores{}) {
		t.Errorf("in no time: %+v", got)
	}
}

// The same seed gives the same requests, of every kind.
func TestFloodsRepeat(t *testing.T) {
	p := plan{Spent: []string{"one", "two"}, Token: "token", Secret: "secret", Password: "password"}
	for _, kind := range attackKinds()[1:] {
		draw := func() (all []string) {
			random := rand.New(rand.NewPCG(1, 2))
			for i := range 20 {
				r := p.request(kind, i, random)
				all = append(all, r.path+" "+r.id+" "+r.secret+" "+r.form.Encode())
			}
			return all
		}
		first := draw()
		if diff := cmp.Diff(first, draw()); diff != "" {
			t.Errorf("%s differs:\n%s", kind, diff)
		}
		if first[0] == first[1] && first[1] == first[2] && first[2] == first[3] && first[3] == first[4] {
			t.Errorf("%s repeats one request: %s", kind, first[0])
		}
	}
}
