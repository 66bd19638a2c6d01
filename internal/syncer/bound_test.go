package syncer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
)

// TestTooManyParts: frames and writers beyond the bounds are reported. Frames are a damage that is
// mended, and the writers with the lowest sequences are left out.
func TestTooManyParts(t *testing.T) {
	r := exchange.Record{Writers: map[string]int64{}, Problem: "x"}
	for i := range int64(10_001) {
		r.Writers[fmt.Sprint("w", i)] = i
		if i < 1001 {
			r.Frames = append(r.Frames, ratelimit.FrameCount{Name: i, Count: 1})
		}
	}
	syncer.Bound(&r, time.Now(), "me")
	_, oldest := r.Writers["w0"]
	if len(r.Frames) != 1000 || !r.Damaged || len(r.Writers) != 10_000 || oldest || r.Frames[0].Name != 1 {
		t.Errorf("%d frames from %d, %d writers, damaged %t", len(r.Frames), r.Frames[0].Name, len(r.Writers), r.Damaged)
	}
	check.Equal(t, "problem", r.Problem, "x, it has 1001 frames, more than any limit has, it has 10001 writers")
}

// TestTooManyFrames: a limit holds even if its document has more frames than are read, wherever
// they are. Mending keeps the frames that count.
func TestTooManyFrames(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		name  string
		first time.Duration // of too many frames, from now on
		every time.Duration
		unit  time.Duration // of their names
	}{
		{"tomorrow", day, time.Minute, time.Second},
		{"from the next minute on", time.Minute, time.Minute, time.Second},
		{"tomorrow, in milliseconds", day, time.Minute, time.Millisecond},
		{"yesterday, in milliseconds", -day, time.Second, time.Millisecond},
		{"up to now", -1001 * time.Minute, time.Minute, time.Second},
		{"in a thousand years", 250 * 365 * day, time.Minute, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &wrapped{}
				now := time.Now().Truncate(time.Minute)
				live := ratelimit.FrameCount{Name: now.Unix(), Count: 90}
				r := exchange.Record{ID: idOf(0), Version: 4, Etag: 4, Frame: 60_000, Writers: map[string]int64{}, Frames: []ratelimit.FrameCount{live}}
				for i := range 1000 {
					at := now.Add(tc.first + time.Duration(i)*tc.every)
					r.Frames = append(r.Frames, ratelimit.FrameCount{Name: at.UnixNano() / int64(tc.unit), Count: 1})
				}
				store.Put(r, now.Add(2*day))
				m := alone(t, store, nil)
				policy, admitted := policyOf(t, ratelimit.NewLimit("per-minute", 100, time.Minute)), 0
				for range 200 {
					if m.take(keyOf(0), policy, 1).Outcome == ratelimit.Allowed {
						admitted++
					}
					pass(100 * time.Millisecond)
				}
				if admitted > 11 { // one was admitted before the document was read
					t.Errorf("%d admitted where 10 are left", admitted)
				}
				for _, f := range store.Documents()[0].Frames {
					if f.Name == live.Name {
						live.Count -= f.Count
					}
				}
				check.Equal(t, "added to the live frame", -live.Count, int64(admitted))
			})
		})
	}
}
