package workload_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/lab/workload"
)

// all returns the requests if every one is admitted.
func all(t *testing.T, s workload.Spec) (out []traffic.Request) {
	t.Helper()
	src := workload.New(s)
	var r traffic.Request
	for src.Next(&r) {
		out = append(out, r)
		src.Answer(&r, traffic.Answer{Outcome: traffic.Admitted})
	}
	check.OK(t, src.Err())
	return out
}

// small returns a short simulation of a kind.
func small(kind string) workload.Spec {
	s := workload.Spec{Traffic: kind, Duration: 20 * time.Minute, Seed: 7}
	switch kind {
	case workload.Spikes:
		s.Number, s.Duration = 5, 70*time.Minute
	case workload.Mix:
		s.Number = 10_000
	}
	return s
}

// TestKinds: all kinds generate requests in the order of their time until the end, and the same
// requests for the same seed.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		workload.Poisson, workload.LogNormal, workload.Wander, workload.Edge, workload.Spikes, workload.Mix,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := small(kind)
			first := all(t, s)
			check.Equal(t, "some requests", len(first) > 1000, true)
			last := workload.Start
			for _, r := range first {
				if r.At.Before(last) || !r.At.Before(workload.Start.Add(s.Duration)) {
					t.Fatalf("a request at %v, after one at %v", r.At, last)
				}
				last = r.At
			}
			check.Equal(t, "the same seed", slices.Equal(all(t, s), first), true)
			s.Seed = 8
			check.Equal(t, "another seed", slices.Equal(all(t, s), first), kind == workload.Edge)
		})
	}
}

// pauses returns mean and variation coefficient of the pauses between requests.
func pauses(all []traffic.Request) (mean, variation float64) {
	var sum, squares float64
	for i := range all[1:] {
		p := all[i+1].At.Sub(all[i].At).Seconds()
		sum, squares = sum+p, squares+p*p
	}
	n := float64(len(all) - 1)
	mean = sum / n
	return mean, math.Sqrt(squares/n-mean*mean) / mean
}

// about ends the test unless got is within a part of want.
func about(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*want {
		t.Errorf("%s = %v, want about %v", what, got, want)
	}
}

// TestRates: twice a limit of 30 a minute is a request a second, however the pauses are
// distributed. The pauses of Poisson arrivals vary as much as their mean. Heavier tails vary more.
func TestRates(t *testing.T) {
	t.Parallel()
	s := workload.Spec{Rate: 2, Requests: 30, Window: time.Minute, Duration: 30 * time.Hour, Seed: 1}
	for kind, least := range map[string]float64{workload.Poisson: 0.98, workload.LogNormal: 2, workload.Wander: 1.01} {
		s.Traffic = kind
		mean, variation := pauses(all(t, s))
		about(t, kind+": pause", mean, 1, 0.1)
		if variation < least || kind == workload.Poisson && variation > 1.02 {
			t.Errorf("%s: the pauses vary by %v of their mean", kind, variation)
		}
	}
}

// TestEdge: the last tenth of a second of a minute has as many requests as the limit. Then a
// hundred a second follow for a minute.
func TestEdge(t *testing.T) {
	t.Parallel()
	in := map[int]int{} // by the tenth of a second
	for _, r := range all(t, workload.Spec{Traffic: workload.Edge, Duration: 6 * time.Minute}) {
		in[int(r.At.Sub(workload.Start)/(100*time.Millisecond))]++
	}
	check.Equal(t, "before the minute", in[598], 0)
	check.Equal(t, "the end of the minute", in[599], 100)
	check.Equal(t, "the next minute", in[600], 10)
	check.Equal(t, "its end", in[1199], 10)
	check.Equal(t, "the pause", in[1200], 0)
	check.Equal(t, "the next round", in[1800+599], 100)
}

// TestSpikes: in the seconds after a full hour each client makes extra calls of three times the
// limit.
func TestSpikes(t *testing.T) {
	t.Parallel()
	s := workload.Spec{Traffic: workload.Spikes, Number: 10, Requests: 20, Window: time.Minute, Rate: 0.3, Duration: 4 * time.Hour}
	in := map[int]int{}
	for _, r := range all(t, s) {
		if since := r.At.Sub(workload.Start); since%time.Hour < 20*time.Second {
			in[int(since/time.Hour)]++
		}
	}
	check.Equal(t, "at the start", in[0] < 60, true)
	for hour := 1; hour <= 3; hour++ {
		about(t, "after a full hour", float64(in[hour]), 10*3*20+20, 0.04)
	}
}

// TestMix: the generated requests stand for the requests of all sources. All sources near the
// limit, and all abusive ones, are included.
func TestMix(t *testing.T) {
	t.Parallel()
	s := workload.Spec{Traffic: workload.Mix, Requests: 600, Window: time.Minute, Number: 54_000, Rate: 0.023, Duration: 10 * time.Minute}
	src := workload.New(s).(interface {
		traffic.Source
		Weight() int64
	})
	in, sampled := map[string]float64{}, 0.0 // in limits
	var r traffic.Request
	for src.Next(&r) {
		in[r.Client] += 1.0 / 6000
		if src.Weight() > 1 {
			check.Equal(t, "weight", src.Weight(), 100)
			sampled += 100.0 / 6000
		}
	}
	about(t, "the mean of those far below", sampled/54_000, 0.023, 0.1)
	near, abusive := 0, 0
	for _, limits := range in {
		if limits > 2.5 {
			abusive++
		} else if limits > 0.6 {
			near++
		}
	}
	check.Equal(t, "abusive", abusive, 2)
	check.Equal(t, "one in 10,000 has more than 0.6 limits", near > 0 && near < 20, true)
}
