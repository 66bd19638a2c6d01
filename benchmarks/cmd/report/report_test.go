package main

import (
	"strings"
	"testing"
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
BenchmarkToken/server=ours-2   1  1 p50-µs  4321 req/s
BenchmarkToken/server=ours-2   1  9 p50-µs  4321 req/s
BenchmarkToken/server=ours-2   1  8 p50-µs  4321 req/s
BenchmarkToken/server=fosite-2   1  0.5 p50-µs  4000 req/s
PASS
`

// TestTable: medians, of latencies the least, the best of the others without references, and bold type where that is ahead.
func TestTable(t *testing.T) {
	t.Parallel()
	page, err := withSection("# Page\n<!-- begin results -->\nold\n<!-- end results -->\nend\n", parse(output).table(rows()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Page\n", "\nmachine: 2 processors\n",
		"| decision, the same one of 100,000 keys, 1 core | ns | 12 | throttled 24, (xsync 6) | 0.5 × |\n",
		"| decision, the same one of 100,000 keys, 2 cores | ns | 40 | ulule 20 | **2 ×** |\n",
		"| token requests, one core | per second | 4,321 | fosite 4,000 | 1.08 × |\n",
		"| token request at half that rate, p50 | µs | 1 | fosite 0.5 | **2 ×** |\n",
		"<!-- end results -->\nend\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "old") || strings.Count(page, "\n| ") != 5 {
		t.Errorf("page:\n%s", page)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 1234567: "1,234,567", 12.345: "12.3", 0.01234: "0.0123", 100: "100", 1.5: "1.5"} {
		if got := number(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
}
