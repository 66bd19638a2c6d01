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
		cores:   usage{server: 0.5, attackers: 0.25, self: 0.05, machine: 1, waited: 0.75},
		attacks: traffic.Summary{"sign-ins": {"503": 2, "400": 1}},
	}
	out := report(options{good: 50, goodRate: 2, connections: 2000, rate: 100, addresses: 8, goMemLimit: "870MiB", goMaxProcs: "2"}, []figures{f})
	for _, want := range [][]string{
		{"sign-ins", "60", "1000", "1", "99.900", "2.0", "2.0", "2.0", "2.0", "30.0", "2.0", "30.0", "3.0", "3.0", "4.0"},
		{"sign-ins", "70", "80", "9", "12", "2.5", "2.0", "0.50", "0.75", "0.25", "0.05", "0.20"},
		strings.Fields("sign-ins: sign-ins: 400 x 1, 503 x 2"),
	} {
		if !hasRow(out, want) {
			t.Errorf("no row %q in\n%s", want, out)
		}
	}
	for _, want := range []string{"the embedded store", `GOMAXPROCS="2" GOMEMLIMIT="870MiB"`, "50 good clients with 2 requests"} {
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
	text := serverConfig(goodClients(3), 2)
	file := filepath.Join(t.TempDir(), "soak.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got := len(c.RateLimit.Clients); got != 4 {
		t.Errorf("%d clients with limits of their own, want 4", got)
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

func TestReadingOfProc(t *testing.T) {
	if got := resident("Name:\tx\nVmHWM:\t  99 kB\nVmRSS:\t   2048 kB\nThreads:\t1\n"); got != 2<<20 {
		t.Errorf("VmRSS = %d", got)
	}
	if got := resident("Name:\tx\n"); got != 0 {
		t.Errorf("no VmRSS = %d", got)
	}
	got, err := processTicks("12 (a ) b) S 1 12 12 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 1 0\n")
	if err != nil || got != 2 {
		t.Errorf("process: %g s, error %v, want 2 s", got, err)
	}
	got, err = machineTicks("cpu  100 200 300 9999 8888 10 20 70 5 5")
	if err != nil || got != 7 {
		t.Errorf("machine: %g s, error %v, want 7 s", got, err)
	}
	for _, line := range []string{"", "12 (x) S 1", "cpu x 2", "cpu 1 2 3 4 5 6 7 x"} {
		if _, err := processTicks(line); err == nil {
			t.Errorf("process %q: no error", line)
		}
		if _, err := machineTicks(line); err == nil {
			t.Errorf("machine %q: no error", line)
		}
	}
}

func TestMetric(t *testing.T) {
	text := []byte("# TYPE go_goroutines gauge\ngo_goroutines 42\nprocess_open_fds 1.2e+01\n")
	for name, want := range map[string]float64{"go_goroutines": 42, "process_open_fds": 12, "go": 0} {
		if got := metric(text, name); got != want {
			t.Errorf("%s = %g, want %g", name, got, want)
		}
	}
}
