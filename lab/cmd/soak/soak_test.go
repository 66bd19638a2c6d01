package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/lab/load"
	"oauth-server/lab/process"
)

// The phases last as long as asked for, all attacks occur alone and together, and the first and the last phase have none.
func TestPhases(t *testing.T) {
	all := phases(10 * time.Minute)
	var sum time.Duration
	var attacks []int
	for _, p := range all {
		sum += p.length
		attacks = append(attacks, len(p.attacks))
	}
	check.Equal(t, "length", sum, 10*time.Minute)
	check.Equal(t, "attacks", attacks, []int{0, 1, 1, 1, 1, 1, 1, 6, 6, 0})
}

// requests returns the outcomes of n requests that took so long, some of which failed.
func requests(n, failed int, took time.Duration) load.Figures {
	return load.Figures{Took: slices.Repeat([]time.Duration{took}, n), Statuses: map[int]int{200: n - failed, 503: failed}}
}

func TestMisses(t *testing.T) {
	const ms = time.Millisecond
	long := phase{name: "p", length: time.Minute}
	rss := func(mib ...int64) (all []process.Usage) {
		for _, n := range mib {
			all = append(all, process.Usage{Memory: n << 20})
		}
		return all
	}
	for name, tt := range map[string]struct {
		figures figures
		want    []string
	}{
		"all kept":     {figures{phase: long, Figures: requests(1000, 0, ms)}, nil},
		"one in 1,000": {figures{phase: long, Figures: requests(1000, 1, ms)}, nil},
		"two in 1,000": {figures{phase: long, Figures: requests(1000, 2, ms)}, []string{"99.800 % of requests succeeded, not 99.9 % (503 x 2)"}},
		"no requests":  {figures{phase: long}, []string{"0.000 % of requests succeeded, not 99.9 % ()"}},
		"slow":         {figures{phase: long, Figures: requests(100, 0, 50*ms)}, []string{"p99 is 50.0 ms, not below 50.0 ms"}},
		"one slow": {figures{phase: long, Figures: load.Figures{
			Took: append(requests(199, 0, ms).Took, time.Second), Statuses: map[int]int{200: 200},
		}}, nil},
		"memory":          {figures{phase: long, Figures: requests(1, 0, ms), used: rss(900, 100, 133)}, []string{"memory grew from 100 to 133 MiB"}},
		"by 32 MiB":       {figures{phase: long, Figures: requests(1, 0, ms), used: rss(900, 900, 2, 100, 4, 132)}, nil},
		"by a tenth":      {figures{phase: long, Figures: requests(1, 0, ms), used: rss(0, 1000, 1100)}, nil},
		"memory, no time": {figures{phase: phase{length: time.Second}, Figures: requests(1, 0, ms), used: rss(1, 1, 900)}, nil},
	} {
		check.Equal(t, name, tt.figures.misses(), tt.want)
	}
}

func TestVerdict(t *testing.T) {
	kept := figures{phase: phase{name: "kept"}, Figures: requests(1000, 0, 0)}
	slow := figures{phase: phase{name: "slow"}, Figures: requests(1000, 0, time.Second)}
	const missed = "MISSED in \"slow\": p99 is 1000.0 ms, not below 50.0 ms\n"
	for _, tt := range []struct {
		all  []figures
		want string
	}{
		{[]figures{kept, kept}, "All bounds are kept.\n"},
		{[]figures{kept, slow}, missed},
		{[]figures{slow}, missed + "Without an attack a bound was missed too: this machine is too slow or too busy for these bounds.\n"},
	} {
		got, err := verdict(tt.all)
		check.Equal(t, "verdict", got, tt.want)
		check.Equal(t, "an error", errors.Is(err, errMissed), strings.Contains(tt.want, missed))
	}
}

// The server reads its configuration without a complaint.
func TestServerConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "soak.yaml")
	check.OK(t, os.WriteFile(file, []byte(serverConfig()), 0o600))
	c, err := config.Load(config.Sources{File: file})
	check.OK(t, err)
	check.Equal(t, "clients with limits of their own", len(c.RateLimit.Clients), goodCount+1)
}
