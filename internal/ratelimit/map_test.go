package ratelimit_test

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestAgainstAMap makes random changes beside a Go map, and keeps every state on the way: none may
// change afterwards.
func TestAgainstAMap(t *testing.T) {
	type state struct {
		got  ratelimit.Map[int]
		want map[string]int
	}
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string]int{}
	var states []state
	var m ratelimit.Map[int]
	for range 200 {
		e := m.Edit()
		for range 1 + rng.IntN(20) {
			key := strconv.Itoa(rng.IntN(300))
			if rng.IntN(3) == 0 {
				e.Delete(key)
				delete(want, key)
				continue
			}
			e.Set(key, rng.Int())
			want[key], _ = e.Get(key)
		}
		m = e.Map()
		states = append(states, state{m, maps.Clone(want)})
		e.Set("later", 1) // an Edit that is used on changes no Map
	}
	for _, s := range states {
		check.Equal(t, "entries", maps.Collect(s.got.All()), s.want)
		check.Equal(t, "Len", s.got.Len(), len(s.want))
	}
	for key, v := range want {
		got, ok := m.Get(key)
		check.Equal(t, "value of "+key, got, v)
		check.Equal(t, key+" is there", ok, true)
	}
	_, ok := m.Get("never")
	check.Equal(t, "an unknown key is there", ok, false)
}

func TestZeroMap(t *testing.T) {
	var m ratelimit.Map[string]
	_, ok := m.Get("a")
	check.Equal(t, "a key is there", ok, false)
	check.Equal(t, "Len", m.Len(), 0)
	check.Equal(t, "entries", maps.Collect(m.All()), map[string]string{})
	e := m.Edit()
	e.Set("a", "b")
	for range e.Map().All() {
		break // an iteration may be broken off
	}
	check.Equal(t, "Len of the original", m.Len(), 0)
}

// TestNoChange: an Edit that changes nothing copies nothing.
func TestNoChange(t *testing.T) {
	e := ratelimit.Map[int]{}.Edit()
	e.Set("a", 1)
	m := e.Map()
	allocations := testing.AllocsPerRun(100, func() {
		e := m.Edit()
		e.Delete("b")
		if v, _ := e.Get("a"); v != 1 || e.Map().Len() != 1 {
			t.Error("it changed the map")
		}
	})
	if allocations > 1 { // the Edit
		t.Errorf("%v allocations", allocations)
	}
}

func BenchmarkChangeOfOne(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var m ratelimit.Map[int]
			e := m.Edit()
			for i := range n {
				e.Set("client-"+strconv.Itoa(i), i)
			}
			m = e.Map()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e := m.Edit()
				e.Set("client-"+strconv.Itoa(i%n), i)
				m = e.Map()
			}
		})
	}
}
