package overload_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/benchmarks/overload"
	"oauth-server/benchmarks/servers"
)

var (
	controls = flag.String("controls", "off,enforce", "modes of the control to measure")
	results  = flag.String("results", "", "file to write the results to, as JSON")
	series   = flag.String("series", "mix,greedy,tokens", "series to measure")
	loads    = flag.String("loads", "", "loads of the mix, times the capacity, in place of what they are otherwise")
	capacity = flag.Float64("capacity", 0, "capacity of the mix, in place of measuring costs and capacities")
	lasts    = flag.Duration("lasts", 0, "how long each load lasts, in place of what it is otherwise")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(servers.Main(m))
}

// BenchmarkOverload measures everything once, with the server and its callers on processors of their own, and logs it.
func BenchmarkOverload(b *testing.B) {
	s := overload.Full()
	s.Controls = strings.Split(*controls, ",")
	s.Logf = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	s.Capacities = [2]float64{*capacity, 30 * *capacity}
	if *loads != "" {
		s.Loads = nil
		for _, text := range strings.Split(*loads, ",") {
			load, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.Fatal(err)
			}
			s.Loads = append(s.Loads, load)
		}
	}
	if !strings.Contains(*series, "mix") {
		s.Loads = s.Loads[:1]
	}
	if !strings.Contains(*series, "greedy") {
		s.Greedy = nil
	}
	if !strings.Contains(*series, "tokens") {
		s.Tokens = nil
	}
	if *lasts > 0 {
		s.Lasts = *lasts
	}
	for b.Loop() {
		began := time.Now()
		report, err := overload.Measure(b, s)
		if err != nil {
			b.Fatal(err)
		}
		report.Took = time.Since(began).Round(time.Second).String()
		write(b, report)
	}
}

func write(tb testing.TB, report *overload.Report) {
	tb.Helper()
	if *results == "" {
		return
	}
	text, err := json.MarshalIndent(report, "", "\t")
	if err == nil {
		err = os.WriteFile(*results, append(text, '\n'), 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
