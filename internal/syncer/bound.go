package syncer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// Excess is the part of a record that [Record.Bound] left out. The syncer may choose other frames
// and writers from it. A store cannot choose them: it knows neither process time nor the reader's
// ID.
type Excess struct {
	Frames  []ratelimit.FrameCount
	Writers map[string]int64
}

func byName(a, b ratelimit.FrameCount) int { return cmp.Compare(a.Name, b.Name) }

// Bound brings a record into the form that [Store] requires: frames ordered by name, at most the
// newest [MaxFramesRead], and the [MaxWritersRead] writers with the highest sequences. It moves the
// rest to Excess, sets Damaged if that includes frames, and returns texts for Problem.
func (r *Record) Bound() (problems []string) {
	slices.SortFunc(r.Frames, byName)
	extra := len(r.Frames) - MaxFramesRead
	if extra <= 0 && len(r.Writers) <= MaxWritersRead {
		return nil
	}
	r.Excess = &Excess{}
	if extra > 0 {
		problems = append(problems, fmt.Sprintf("it has %d frames, more than any limit", len(r.Frames)))
		r.Excess.Frames, r.Frames, r.Damaged = r.Frames[:extra:extra], r.Frames[extra:], true
	}
	if len(r.Writers) > MaxWritersRead {
		problems = append(problems, fmt.Sprintf("it has %d writers", len(r.Writers)))
		r.Writers, r.Excess.Writers = newestWriters(r.Writers)
	}
	return problems
}

// newestWriters splits the writers into the MaxWritersRead with the highest sequences and the
// others.
func newestWriters(all map[string]int64) (newest, others map[string]int64) {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	})
	newest, others = make(map[string]int64, MaxWritersRead+1), map[string]int64{}
	for i, name := range names {
		if i < MaxWritersRead {
			newest[name] = all[name]
		} else {
			others[name] = all[name]
		}
	}
	return newest, others
}

// chooseFrames replaces the frames of a bounded record by the frames around now. Half of them are
// the latest that have begun, so frames in the future, however many, do not displace the ones that
// count. It also adds the given writer back: without its sequence its writes would seem refused.
func (r *Record) chooseFrames(now time.Time, writer string) {
	if r.Excess == nil {
		return
	}
	if seq, there := r.Excess.Writers[writer]; there {
		r.Writers[writer] = seq
	}
	if len(r.Excess.Frames) == 0 {
		return
	}
	all := slices.Concat(r.Excess.Frames, r.Frames)
	slices.SortFunc(all, func(a, b ratelimit.FrameCount) int { // names are in seconds or milliseconds
		return cmp.Compare(ratelimit.FrameStart(a.Name), ratelimit.FrameStart(b.Name))
	})
	begun, _ := slices.BinarySearchFunc(all, now.UnixMilli()+1, func(f ratelimit.FrameCount, ms int64) int {
		return cmp.Compare(ratelimit.FrameStart(f.Name), ms)
	})
	first := min(max(begun-MaxFramesRead/2, 0), len(all)-MaxFramesRead)
	r.Frames = all[first : first+MaxFramesRead]
	slices.SortFunc(r.Frames, byName)
}
