//go:build !race

package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/algorithm"
	"oauth-server/internal/simulate/workload"
)

// Under the race detector these take ten times as long, and it has nothing to see: each comparison is one goroutine. CI
// runs them without it too.

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
