package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/clientcfg"
)

func TestMemoryOfThirds(t *testing.T) {
	for _, test := range []struct {
		rss          []int64
		middle, last int64
	}{
		{nil, 0, 0},
		{[]int64{9, 2, 3}, 2, 3},
		{[]int64{9, 9, 2, 1, 4, 3}, 2, 4},
		{[]int64{9, 9, 9, 1, 2, 3, 4}, 2, 4},
	} {
		var f figures
		for _, rss := range test.rss {
			f.samples = append(f.samples, sample{rss: rss})
		}
		if middle, last := f.memory(); middle != test.middle || last != test.last {
			t.Errorf("memory of %v = %d, %d, want %d, %d", test.rss, middle, last, test.middle, test.last)
		}
	}
}

func TestFlat(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		middle, last int64
		want         bool
	}{
		{100 * mib, 100 * mib, true},
		{100 * mib, 50 * mib, true},
		{100 * mib, 132 * mib, true}, // by 32 MiB
		{100 * mib, 133 * mib, false},
		{1000 * mib, 1100 * mib, true}, // by a tenth
		{1000 * mib, 1101 * mib, false},
	} {
		if got := flat(test.middle, test.last); got != test.want {
			t.Errorf("flat(%d, %d MiB) = %t", test.middle/mib, test.last/mib, got)
		}
	}
}

// requests returns n successful requests of the given latency, and as many failed ones as given.
func requests(n, failed int, took time.Duration) []measurement {
	all := slices.Repeat([]measurement{{grant: clientcfg.ClientCredentials, outcome: "200", took: took}}, n)
	for i := range failed {
		all[i].outcome = "503"
	}
	return all
}

func TestMisses(t *testing.T) {
	long := phase{name: "p", length: time.Minute}
	growing := []sample{{rss: 100 << 20}, {rss: 100 << 20}, {rss: 200 << 20}}
	for name, test := range map[string]struct {
		figures figures
		want    []string
	}{
		"all kept":         {figures{phase: long, good: requests(1000, 0, time.Millisecond)}, nil},
		"one in 1,000":     {figures{phase: long, good: requests(1000, 1, time.Millisecond)}, nil},
		"two in 1,000":     {figures{phase: long, good: requests(1000, 2, time.Millisecond)}, []string{"99.800 % of requests succeeded, not 99.9 % (503 x 2)"}},
		"no requests":      {figures{phase: long}, []string{"0.000 % of requests succeeded, not 99.9 % ()"}},
		"slow":             {figures{phase: long, good: requests(100, 0, 50*time.Millisecond)}, []string{"p99 is 50.0 ms, not below 50.0 ms"}},
		"memory":           {figures{phase: long, good: requests(1, 0, 0), samples: growing}, []string{"memory grew from 100 to 200 MiB"}},
		"memory, no time":  {figures{phase: phase{length: time.Second}, good: requests(1, 0, 0), samples: growing}, nil},
		"one slow request": {figures{phase: long, good: append(requests(199, 0, 0), requests(1, 0, time.Second)...)}, nil},
	} {
		if diff := cmp.Diff(test.want, test.figures.misses()); diff != "" {
			t.Errorf("%s: misses (-want +got):\n%s", name, diff)
		}
	}
}

func TestVerdict(t *testing.T) {
	kept := figures{phase: phase{name: "kept"}, good: requests(1000, 0, 0)}
	slow := figures{phase: phase{name: "slow"}, good: requests(1000, 0, time.Second)}
	for name, test := range map[string]struct {
		all  []figures
		err  error
		want string
	}{
		"kept":     {[]figures{kept, kept}, nil, "All bounds are kept.\n"},
		"missed":   {[]figures{kept, slow}, errMissed, "MISSED in \"slow\": p99 is 1000.0 ms, not below 50.0 ms\n"},
		"baseline": {[]figures{slow}, errMissed, "MISSED in \"slow\": p99 is 1000.0 ms, not below 50.0 ms\nWithout an attack a bound was missed too: this machine is too slow or too busy for these bounds.\n"},
	} {
		got, err := verdict(test.all)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: error %v, want %v", name, err, test.err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
