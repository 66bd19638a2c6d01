package benchmark_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/lab/benchmark"
)

func TestParse(t *testing.T) {
	got := benchmark.Parse(`goos: linux
BenchmarkScaleFamilies/families=1000-2         	       1	4492244237 ns/op	       409.6 file-B/family	       315.8 p50-µs
BenchmarkRotateFamily-2 	 5000	 1000 ns/op	 2.000 commands/op
BenchmarkRotateFamily-2 	 5000	 2000 ns/op	 many commands/op
BenchmarkDecision/keys=1 	 5000	 10 ns/op
PASS
`)
	want := benchmark.Results{
		"ScaleFamilies/families=1000": {"ns/op": {4492244237}, "file-B/family": {409.6}, "p50-µs": {315.8}},
		"RotateFamily":                {"ns/op": {1000, 2000}, "commands/op": {2}},
		"Decision/keys=1/cores=1":     {"ns/op": {10}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
