package syncer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// Bounds of the parts of a document that are used. Parts beyond them are left out, and Problem
// mentions it.
const (
	// maxFrames is more than a limit of [ratelimit.MaxFrames] frames needs.
	maxFrames = 1000
	// maxWriters is more than [MaxWriters] and all live instances together.
	maxWriters = 10_000
)

func byName(a, b ratelimit.FrameCount) int { return cmp.Compare(a.Name, b.Name) }

// bound leaves out frames and writers beyond the bounds. It keeps the frames around now, half of
// them the latest that have begun, so frames in the future, however many, do not displace the ones
// that count. It keeps the writers with the highest sequences, and own: without its sequence its
// writes would seem refused.
func (r *Record) bound(now time.Time, own string) {
	if n := len(r.Frames); n > maxFrames {
		r.complain("it has %d frames, more than any limit has", n)
		slices.SortFunc(r.Frames, func(a, b ratelimit.FrameCount) int { // names are in seconds or milliseconds
			return cmp.Compare(ratelimit.FrameStart(a.Name), ratelimit.FrameStart(b.Name))
		})
		begun, _ := slices.BinarySearchFunc(r.Frames, now.UnixMilli()+1, func(f ratelimit.FrameCount, ms int64) int {
			return cmp.Compare(ratelimit.FrameStart(f.Name), ms)
		})
		first := min(max(begun-maxFrames/2, 0), n-maxFrames)
		r.Frames, r.Damaged = r.Frames[first:first+maxFrames], true
		slices.SortFunc(r.Frames, byName)
	}
	if n := len(r.Writers); n > maxWriters {
		r.complain("it has %d writers", n)
		oldest := slices.SortedFunc(maps.Keys(r.Writers), func(a, b string) int {
			return cmp.Or(cmp.Compare(r.Writers[a], r.Writers[b]), cmp.Compare(b, a))
		})
		for _, name := range oldest[:n-maxWriters] {
			if name != own {
				delete(r.Writers, name)
			}
		}
	}
}

// complain adds to the problem of a document.
func (r *Record) complain(format string, args ...any) {
	if r.Problem != "" {
		r.Problem += ", "
	}
	r.Problem += fmt.Sprintf(format, args...)
}
