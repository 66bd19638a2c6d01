package syncer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

func TestBound(t *testing.T) {
	record := func(frames, writers int) *syncer.Record {
		r := &syncer.Record{Writers: map[string]int64{}}
		for i := range frames {
			r.Frames = append(r.Frames, ratelimit.FrameCount{Name: int64(frames - i), Count: 1})
		}
		for i := range writers {
			r.Writers[fmt.Sprintf("w%d", i)] = int64(i)
		}
		return r
	}
	for _, test := range []struct {
		name            string
		frames, writers int
		problems        []string
		oldest, lowest  int64
		damaged         bool
	}{
		{"as many as are read", syncer.MaxFramesRead, syncer.MaxWritersRead, nil, 1, 0, false},
		{"more frames", syncer.MaxFramesRead + 3, 1, []string{"it has 1003 frames, more than any limit"}, 4, 0, true},
		{"more writers", 1, syncer.MaxWritersRead + 2, []string{"it has 10002 writers"}, 1, 2, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := record(test.frames, test.writers)
			check.Equal(t, "problems", r.Bound(), test.problems)
			left := 0
			if r.Excess != nil {
				left = len(r.Excess.Frames) + len(r.Excess.Writers)
			}
			mustEqual(t, "kept and left out", test.frames+test.writers, left+len(r.Frames)+len(r.Writers))
			lowest := int64(1 << 62)
			for _, seq := range r.Writers {
				lowest = min(lowest, seq)
			}
			if r.Frames[0].Name != test.oldest || lowest != test.lowest || r.Damaged != test.damaged {
				t.Errorf("from frame %d and sequence %d on, damaged %v", r.Frames[0].Name, lowest, r.Damaged)
			}
			for i := range r.Frames[1:] {
				if r.Frames[i].Name >= r.Frames[i+1].Name {
					t.Fatalf("frames are not in order: %+v", r.Frames[i:i+2])
				}
			}
		})
	}
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
				r := syncer.Record{ID: idOf(0), Version: 4, Etag: 4, Frame: 60_000, Writers: map[string]int64{}, Frames: []ratelimit.FrameCount{live}}
				for i := range syncer.MaxFramesRead {
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
				mustEqual(t, "added to the live frame", int64(admitted), -live.Count)
			})
		})
	}
}
