package overload_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oauth-server/lab/overload"
	"oauth-server/lab/servers"
)

var (
	controls = flag.String("controls", "off,enforce", "modes of the control to measure")
	results  = flag.String("results", "", "file to write the results to, as JSON")
	series   = flag.String("series", "mix,greedy,tokens", "series to measure")
	loads    = flag.String("loads", "", "loads of the mix, times the capacity, in place of what they are otherwise")
	capacity = flag.Float64("capacity", 0, "capacity of the mix, in place of measuring costs and capacities")
	attempts = flag.Int("attempts", 0, "how often a load is measured at most, if other programs ran meanwhile, in place of what it is otherwise")
	quiet    = flag.Duration("quiet", 0, "how long the end of other programs is waited for before each load, at most, in place of what it is otherwise")
	lasts    = flag.Duration("lasts", 0, "how long each load lasts, in place of what it is otherwise")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(servers.Main(m))
}

// BenchmarkOverload measures everything once, with the server and its callers on processors of their own, and logs it.
func BenchmarkOverload(b *testing.B) {
	s := overload.Full()
	if *attempts > 0 {
		s.Attempts = *attempts
	}
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
	if *quiet > 0 {
		s.Quiet = *quiet
	}
	if *lasts > 0 {
		s.Lasts = *lasts
	}
	for b.Loop() {
		report, err := overload.Measure(b, s)
		if err != nil {
			b.Fatal(err)
		}
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

// TestShort runs all of it, shortly, on any processor, and without comparing times.
func TestShort(t *testing.T) {
	report, err := overload.Measure(t, overload.Short())
	if err != nil {
		t.Fatal(err)
	}
	write(t, report)
	if len(report.Costs) < 7 || report.Capacity <= 0 || report.TokenCapacity <= 0 {
		t.Errorf("costs %v, capacities %v and %v", report.Costs, report.Capacity, report.TokenCapacity)
	}
	for _, series := range []string{overload.MixSeries, overload.TokenSeries, overload.GreedySeries} {
		i := slices.IndexFunc(report.Rows, func(r overload.Row) bool { return r.Series == series })
		if i < 0 {
			t.Errorf("there is no row of series %s", series)
			continue
		}
		if r := report.Rows[i]; r.All.Due+r.All.Late == 0 || r.Goodput < 0 || r.MemoryPeak == 0 || r.Connections == 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(report.Recoveries) == 0 {
		t.Error("there is no recovery")
	}
	text := report.Text()
	for _, want := range []string{"| refresh_token |", "| none | 0.5 |", "refresh and code succeed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if err := report.Picture(filepath.Join(t.TempDir(), "overload.svg")); err != nil {
		t.Error(err)
	}
}
