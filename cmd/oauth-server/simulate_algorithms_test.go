package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/algorithm"
	"oauth-server/internal/simulate/workload"
)

// compared runs the command with -o json.
func compared(t *testing.T, args ...string) []comparison {
	t.Helper()
	stdout, stderr, status := run(t, "", append([]string{"simulate", "algorithms", "-o", "json"}, args...)...)
	check.Equal(t, stderr, status, exitOK)
	var answer struct{ Comparisons []comparison }
	check.OK(t, json.Unmarshal([]byte(stdout), &answer))
	return answer.Comparisons
}

func TestSimulateAlgorithmsAsJSON(t *testing.T) {
	t.Parallel()
	all := compared(t, "--traffic", "edge", "--duration", "6m", "--algorithm", "unlimited,exact,fixed,leaky-queue", "--series", "--per", "1m")
	check.Equal(t, "comparisons", len(all), 1)
	check.Equal(t, "what was made", []string{all[0].Traffic, all[0].Window, all[0].Duration, all[0].Per}, []string{"edge", "1m", "6m", "1m"})
	byName := map[string]algorithm.Result{}
	for _, r := range all[0].Algorithms {
		byName[r.Algorithm] = r
	}
	check.Equal(t, "the exact log", byName["exact"].WorstWindow, 100)
	check.Equal(t, "a fixed window", []int64{byName["fixed"].WorstWindow, byName["fixed"].FalseAdmits}, []int64{200, 200})
	check.Equal(t, "tokens by the minute without a limit", byName["unlimited"].Series.Tokens, []int64{100, 6000, 0, 100, 6000})
	check.Equal(t, "with a queue", byName["leaky-queue"].Series.Tokens[1] <= 101, true)

	all = compared(t, "--rate", "0.5x,2", "--limit", "10/1s", "--duration", "1m", "--clients", "hammer,backoff", "--seed", "4")
	check.Equal(t, "rates", []float64{all[0].Rate, all[1].Rate, all[2].Rate, all[3].Rate}, []float64{0.5, 0.5, 2, 2})
	check.Equal(t, "seed", all[3].Seed, 4)
	check.Equal(t, "clients", []string{all[2].Clients, all[3].Clients}, []string{"hammer", "backoff"})
	for _, r := range all[0].Algorithms {
		check.Equal(t, "frames of a seventh of a millisecond", r.Algorithm == "sliding-6", false)
	}
}

// TestSimulateAlgorithmsOfALog: the traffic is that of a log, and what cannot be read of it is said.
func TestSimulateAlgorithmsOfALog(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "requests.csv")
	text := "time,client,user\n"
	for i := range 30 { // twenty at the end of a minute, ten at the beginning of the next
		text += fmt.Sprintf("2026-05-28T12:0%d:%02dZ,shop,ada\n", i/20, (59+i/20)%60)
	}
	check.OK(t, os.WriteFile(log, []byte(text+"yesterday,shop,ada\n"), 0o600))
	args := []string{"simulate", "algorithms", log, "--format", "csv", "--map", "client=client,user=user,time=time", "--limit", "20/60s"}
	stdout, stderr, status := run(t, "", append(args, "-o", "json")...)
	check.Equal(t, stderr, status, exitOK)
	var answer struct{ Comparisons []comparison }
	check.OK(t, json.Unmarshal([]byte(stdout), &answer))
	c := answer.Comparisons[0]
	check.Equal(t, "lines", []uint64{c.Lines.Read, c.Lines.Unread}, []uint64{30, 1})
	check.Equal(t, "said", strings.Contains(stderr, "requests.csv:32"), true)
	for _, r := range c.Algorithms {
		switch r.Algorithm {
		case algorithm.Fixed:
			check.Equal(t, "false admits of a fixed window", r.FalseAdmits, 10)
		case algorithm.Exact, algorithm.Sliding:
			check.Equal(t, r.Algorithm, []int64{r.Admitted, r.FalseAdmits, r.FalseDenials}, []int64{20, 0, 0})
		}
	}
	stdout, _, _ = run(t, "", args...)
	check.Equal(t, "title", strings.HasPrefix(stdout, log+", limit 20/1m\n\nEach decision"), true)
}

// TestSimulateAlgorithmsShowsAll: the help has every kind of traffic and every behaviour, and each can be asked for.
func TestSimulateAlgorithmsShowsAll(t *testing.T) {
	t.Parallel()
	help, _, _ := run(t, "", "simulate", "algorithms", "--help")
	for _, k := range workload.Kinds() {
		check.Equal(t, k.Name, strings.Contains(help, k.About), true)
	}
	for _, b := range workload.Behaviours() {
		check.Equal(t, b.Name, strings.Contains(help, b.About) && strings.Contains(help, b.Source), true)
	}
	stdout, _, status := run(t, "", "simulate", "algorithms", "--rate", "1x,2x", "--duration", "2m", "--clients", "hammer,ignore", "--seed", "1,2")
	check.Equal(t, "status", status, exitOK)
	one, _, _ := run(t, "", "simulate", "algorithms", "--duration", "2m", "--table", "flow")
	check.Equal(t, "one table", strings.Contains(one, "TOKENS/S") && !strings.Contains(one, "WRONG"), true)
	for _, want := range []string{"poisson, clients: 1 (hammer, ignore), limit 100/1m, 2m, seed 1 2\n", "RATE   CLIENTS  SEED  ALGORITHM ", "\n2.00x  hammer   2     sliding-60 ", "at most in 1s:", "estimate against", "KEYS"} {
		check.Equal(t, want+" in\n"+stdout, strings.Contains(stdout, want), true)
	}
}

func TestSimulateAlgorithmsBadFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"--limit 100":              {`--limit: limit "100": REQUESTS/WINDOW is needed`},
		"--limit 0/60s":            {"--limit.requests: 0 is not between 1 and"},
		"--limit 10/60s,frames=2":  {"--limit: has options: give 10/60s alone, and choose by --algorithm"},
		"--burst -3":               {"--burst: -3 is not between 1 and"},
		"--rate 1x,-2x":            {"--rate: -2 is not above 0"},
		"--rate fast --per 1us":    {`--rate: "fast" is not a multiple of the limit, such as 1.5x`, "--per: 1µs is not a whole number of milliseconds"},
		"--algorithm slide":        {`--algorithm: there is no algorithm "slide"; there are unlimited, exact`},
		"--algorithm sliding-7":    {`--algorithm: algorithm "sliding-7"`},
		"--traffic x --clients y":  {`--traffic: there is no kind "x"`, `--clients: there is no behaviour "y"`},
		"--token-lifetime 1ms":     {"--token-lifetime: 1ms is not at least a second"},
		"--traffic mix --number 3": {"--number: 3 is not between 1000 and 1000000"},
		"--table x":                {`--table: there is no table "x"; there are decisions, flow, estimates`},
		"--rate 0":                 {`--rate: "0" is not a multiple`},
		"no.log --seed 2":          {"--seed is of traffic that is made up: leave out it, or the log"},
		"-":                        {"-: each algorithm reads the log, and standard input can be read once: name a file"},
	} {
		_, stderr, status := run(t, "", append([]string{"simulate", "algorithms"}, strings.Fields(args)...)...)
		check.Equal(t, args+": status", status, 2)
		for _, w := range want {
			check.Equal(t, w+" in "+stderr, strings.Contains(stderr, w), true)
		}
	}
}

// TestAccuracyPage: the page has what the command prints. The smallest of its sections stands for all of them, which
// `make accuracy` writes.
func TestAccuracyPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/accuracy.md")
	check.OK(t, err)
	section := regexp.MustCompile("(?s)<!-- begin edge -->\n\n```\n\\$ oauth-server ([^\n]*)\n(.*)```\n\n<!-- end edge -->").FindSubmatch(page)
	if section == nil {
		t.Fatal("docs/accuracy.md has no section edge with a command and its output")
	}
	stdout, stderr, status := run(t, "", strings.Fields(string(section[1]))...)
	check.Equal(t, stderr, status, exitOK)
	check.Equal(t, "the page and the command; make accuracy writes the page", string(section[2]), stdout)
}
