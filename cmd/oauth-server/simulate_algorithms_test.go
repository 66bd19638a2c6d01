package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/algorithm"
)

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
