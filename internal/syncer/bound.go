package syncer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
)

// Bounds of the parts of a document that are used. Parts beyond them are left out, and Problem
// mentions it.
const (
	// maxFrames is more than a limit of [ratelimit.MaxFrames] frames needs.
	maxFrames = 1000
	// maxWriters is more than [MaxWriters] and all live instances together.
	maxWriters = 10_000
)

// bound leaves out frames and writers beyond the bounds. It keeps the frames around now, half of
// them the latest that have begun, so frames in the future, however many, do not displace the ones
// that count. It keeps the writers with the highest sequences, and own: without its sequence its
// writes would seem refused.
func bound(r *exchange.Record, now time.Time, own string) {
	if n := len(r.Frames); n > maxFrames {
		complain(r, "it has %d frames, more than any limit has", n)
		slices.SortFunc(r.Frames, func(a, b ratelimit.FrameCount) int { // names are in seconds or milliseconds
			return cmp.Compare(ratelimit.FrameStart(a.Name), ratelimit.FrameStart(b.Name))
		})
		begun, _ := slices.BinarySearchFunc(r.Frames, now.UnixMilli()+1, func(f ratelimit.FrameCount, ms int64) int {
			return cmp.Compare(ratelimit.FrameStart(f.Name), ms)
		})
		first := min(max(begun-maxFrames/2, 0), n-maxFrames)
		r.Frames, r.Damaged = r.Frames[first:first+maxFrames], true
		slices.SortFunc(r.Frames, exchange.ByName)
	}
	if n := len(r.Writers); n > maxWriters {
		complain(r, "it has %d writers", n)
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
func complain(r *exchange.Record, format string, args ...any) {
	if r.Problem != "" {
		r.Problem += ", "
	}
	r.Problem += fmt.Sprintf(format, args...)
}
