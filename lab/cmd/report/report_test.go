package main

import (
	"strings"
	"testing"

	"oauth-server/lab/page"
)

const output = `# machine: 2 processors
goos: linux
BenchmarkDecision/limiter=ours/keys=100000/choice=one     100  10.0 ns/op  0 B/op  0 allocs/op
BenchmarkDecision/limiter=ours/keys=100000/choice=one     100  30.0 ns/op  0 B/op  0 allocs/op
BenchmarkDecision/limiter=ours/keys=100000/choice=one     100  12.0 ns/op  0 B/op  0 allocs/op
BenchmarkDecision/limiter=ours/keys=100000/choice=one-2   100  40.0 ns/op  0 B/op  0 allocs/op
BenchmarkDecision/limiter=xsync/keys=100000/choice=one    100  6.0 ns/op   0 B/op  0 allocs/op
BenchmarkDecision/limiter=throttled/keys=100000/choice=one  100  24.0 ns/op   0 B/op  0 allocs/op
BenchmarkDecision/limiter=ulule/keys=100000/choice=one-2  100  20.0 ns/op   0 B/op  0 allocs/op
BenchmarkToken/server=ours-2   1  7 p50-µs  4321 req/s
BenchmarkToken/server=ours-2   1  3 p50-µs  4321 req/s
BenchmarkToken/server=ours-2   1  9 p50-µs  4321 req/s
BenchmarkToken/server=fosite-2   1  0.5 p50-µs  4000 req/s
PASS
`

// some are rows that the output above is enough for.
func some() []row {
	one := "Decision/limiter=%s/keys=100000/choice=one/cores=1"
	two := "Decision/limiter=%s/keys=100000/choice=one/cores=2"
	ours, fosite := "Token/server=ours", named("Token/server=%s", "fosite")
	return []row{
		{about: "on one", unit: "ns/op", shown: "ns", ours: strings.Replace(one, "%s", "ours", 1), others: append(named(one, "throttled"), references(one, "xsync")...)},
		{about: "on two", unit: "ns/op", shown: "ns", ours: strings.Replace(two, "%s", "ours", 1), others: named(two, "ulule")},
		{about: "tokens", unit: "req/s", shown: "per second", more: true, ours: ours, others: fosite},
		{about: "p50", unit: "p50-µs", shown: "µs", ours: ours, others: fosite},
	}
}

// TestTable: medians, of latencies the least, the best of the others without references, and bold type where that is
// ahead.
func TestTable(t *testing.T) {
	t.Parallel()
	table, err := parse(output).table(some())
	if err != nil {
		t.Fatal(err)
	}
	next, err := page.With("# Page\n<!-- begin results -->\nold\n<!-- end results -->\nend\n", "results", table)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Page\n", "\nmachine: 2 processors\n",
		"| on one | ns | 12 | throttled 24, (xsync 6) | 0.5 × |\n",
		"| on two | ns | 40 | ulule 20 | **2 ×** |\n",
		"| tokens | per second | 4,321 | fosite 4,000 | 1.08 × |\n",
		"| p50 | µs | 3 | fosite 0.5 | **6 ×** |\n",
		"<!-- end results -->\nend\n",
	} {
		if !strings.Contains(next, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(next, "old") || strings.Count(next, "\n| ") != 5 {
		t.Errorf("page:\n%s", next)
	}
}

// TestMissing: the table is not made without a benchmark that has not run: without a peer, ours would look better.
func TestMissing(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"limiter=ulule", "server=fosite", "server=ours"} {
		var lines []string
		for line := range strings.Lines(output) {
			if !strings.Contains(line, of) {
				lines = append(lines, line)
			}
		}
		if _, err := parse(strings.Join(lines, "")).table(some()); err == nil || !strings.Contains(err.Error(), of) {
			t.Errorf("without %s: %v", of, err)
		}
	}
}

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		ours, best float64
		more       bool
		want       string
	}{{1, 2, false, "0.5 ×"}, {1, 2, true, "**0.5 ×**"}, {2, 2, false, "equal"}, {1, 0, false, "**more**"}, {0, 0, false, "equal"}} {
		if got := ratio(tc.ours, tc.best, true, tc.more); got != tc.want {
			t.Errorf("%v beside %v (more is better: %t) is %s, want %s", tc.ours, tc.best, tc.more, got, tc.want)
		}
	}
}
