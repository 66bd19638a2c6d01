package ratelimit_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestStoredUsage: StoredUsage of a document equals Usage in a process that has read it.
func TestStoredUsage(t *testing.T) {
	limits := []ratelimit.Limit{
		ratelimit.NewLimit("per-minute", 10, time.Minute), ratelimit.NewLimit("per-hour", 100, time.Hour),
	}
	policies, err := ratelimit.Compile(ratelimit.Settings{Mode: ratelimit.Enforce, CanaryPercent: 100, Default: ratelimit.Policy{User: limits, Client: limits}})
	check.OK(t, err)
	ls := policies.For("shop").User
	now := time.Unix(1_700_000_015, 0) // 35 s into a minute
	minute := now.Truncate(time.Minute).Unix()
	frames := []ratelimit.FrameCount{{Name: minute - 60, Count: 12}, {Name: minute, Count: 5}, {Name: minute - 600, Count: 99}}
	id := ratelimit.CounterID{ClientID: "shop", Username: "ada"}
	u, ok := stored(now, id, ls, frames)
	if !ok || u.Known != 17 || u.Unflushed != 0 || u.Estimate != 5+12*25.0/60 || u.Remaining != 0 || u.Limit.Name != "per-minute" || !u.LastSeen.IsZero() {
		t.Errorf("%+v, %v", u, ok)
	}
	// 5 + 12 x 25/60 is exactly 10, so there is room for one at any later moment.
	check.Equal(t, "free in", u.FreeIn, time.Millisecond)
	ahead := []ratelimit.FrameCount{{Name: minute + 60, Count: 4}, {Name: minute, Count: 5}} // from a clock that is ahead
	if u, ok = stored(now, id, ls, ahead); !ok || u.Known != 9 {
		t.Errorf("%+v, %v", u, ok)
	}
	id.Limit = "per-hour"
	if u, ok = stored(now, id, ls, []ratelimit.FrameCount{{Name: now.Truncate(time.Hour).Unix(), Count: 7}}); !ok || u.Known != 7 || u.Remaining != 93 {
		t.Errorf("%+v, %v", u, ok)
	}
	for name, bad := range map[string]struct {
		limit  string
		frames []ratelimit.FrameCount
	}{
		"a limit that is none": {"per-day", frames},
		"nothing":              {"", nil},
		"nothing that matters": {"", []ratelimit.FrameCount{{Name: minute - 600, Count: 99}, {Name: minute, Count: -3}}},
	} {
		id.Limit = bad.limit
		if u, ok := stored(now, id, ls, bad.frames); ok {
			t.Errorf("%s: %+v", name, u)
		}
	}
	id.Limit = ""
	tens := &ratelimit.Document{Frame: 10_000, Frames: []ratelimit.FrameCount{{Name: minute - 10, Count: 3}, {Name: minute, Count: 2}}}
	if u, ok := ratelimit.StoredUsage(now, id, ls, tens); !ok || u.Known != 5 || u.Estimate != 2+3*25.0/60 {
		t.Errorf("frames of ten seconds: %+v, %v", u, ok)
	}
}

func stored(now time.Time, id ratelimit.CounterID, ls *ratelimit.Limits, frames []ratelimit.FrameCount) (ratelimit.Usage, bool) {
	return ratelimit.StoredUsage(now, id, ls, &ratelimit.Document{Frames: frames})
}
