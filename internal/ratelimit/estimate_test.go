package ratelimit_test

import (
	"testing"

	"pgregory.net/rapid"

	"oauth-server/internal/ratelimit"
)

// TestFirstBelow compares the time at which the estimate falls below a target with a search through every millisecond,
// also from a time after the newest frame.
func TestFirstBelow(t *testing.T) {
	const frame = 20
	rapid.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom([]ratelimit.Algorithm{ratelimit.Fixed, ratelimit.Weighted, ratelimit.Sliding}).Draw(t, "algorithm")
		counts := rapid.SliceOfN(rapid.Uint32Range(0, 9), 2, 2).Draw(t, "counts")
		if algorithm == ratelimit.Sliding {
			counts = append(counts, rapid.Uint32Range(0, 9).Draw(t, "third"))
		}
		from := rapid.Int64Range(0, 5*frame).Draw(t, "from")
		target := rapid.Int64Range(1, 12).Draw(t, "target")
		r := ratelimit.Rule{FrameMS: frame}
		r.Algorithm, r.Frames = algorithm, len(counts)-1
		at := func(ms int64) (f ratelimit.Frames) { // with the frames moved to ms
			past := ms / frame
			f = ratelimit.Frames{Rule: &r, Slots: make([]ratelimit.Slot, len(counts)), Start: past * frame, Instances: 1}
			for i, n := range counts {
				if j := i + int(past); j < len(counts) {
					f.Slots[j].Known = n
				}
			}
			f.Sum(&r)
			return f
		}
		want := from
		for ; ; want++ {
			if f := at(want); f.Floor(&r, want) < target {
				break
			}
		}
		f := at(0)
		if got := f.FirstBelow(&r, from, target); got != want {
			t.Fatalf("below %d at %d, want %d", target, got, want)
		}
	})
}
