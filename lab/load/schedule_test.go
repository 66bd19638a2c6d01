package load

import (
	"math"
	"slices"
	"testing"
	"time"
)

func times(phases []Phase, seed uint64) (all []time.Duration) {
	s := newSchedule(phases, seed, 0)
	for at, ok := s.due(math.MaxInt64); ok; at, ok = s.due(math.MaxInt64) {
		all = append(all, at)
	}
	return all
}

// TestSchedule: each phase has as many times as its rate says, in order and at random distances.
func TestSchedule(t *testing.T) {
	t.Parallel()
	phases := []Phase{{For: 10 * time.Second, Rate: 100}, {For: 5 * time.Second}, {For: 10 * time.Second, Rate: 1000}}
	all := times(phases, 1)
	if !slices.IsSorted(all) {
		t.Error("the times are not in order")
	}
	counts := [3]int{}
	for _, at := range all {
		switch {
		case at < 10*time.Second:
			counts[0]++
		case at < 15*time.Second:
			counts[1]++
		default:
			counts[2]++
		}
	}
	for i, want := range []float64{1000, 0, 10000} {
		if math.Abs(float64(counts[i])-want) > 5*math.Sqrt(want) {
			t.Errorf("phase %d has %d times, want about %v", i, counts[i], want)
		}
	}
	if last := all[len(all)-1]; last >= 25*time.Second {
		t.Errorf("the last is at %s", last)
	}
	// The distances of a Poisson process have a deviation as large as their mean.
	var sum, squares float64
	for i := 1; i < counts[0]; i++ {
		d := (all[i] - all[i-1]).Seconds()
		sum, squares = sum+d, squares+d*d
	}
	n := float64(counts[0] - 1)
	if deviation := math.Sqrt(squares/n-sum/n*sum/n) / (sum / n); deviation < 0.85 || deviation > 1.15 {
		t.Errorf("the deviation of distances is %.2f times their mean", deviation)
	}
	if !slices.Equal(all, times(phases, 1)) || slices.Equal(all, times(phases, 2)) {
		t.Error("the times are not those of the seed")
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	var q queue[int]
	next := 0
	for n := range 1000 {
		q.push(n)
		if n%3 == 0 {
			if got := q.pop(); got != next {
				t.Fatalf("got %d, want %d", got, next)
			}
			next++
		}
	}
	for ; q.len() > 0; next++ {
		if first, got := q.first(), q.pop(); first != next || got != next {
			t.Fatalf("got %d and then %d, want %d", first, got, next)
		}
	}
	if next != 1000 {
		t.Errorf("%d of 1000 came out", next)
	}
}
