package syncer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// Excess is what [Record.Bound] has left out of a record. A store cannot choose
// better: it has neither the time that counters go by nor the name of the reader.
type Excess struct {
	Frames  []ratelimit.FrameCount
	Writers map[string]int64
}

func byName(a, b ratelimit.FrameCount) int { return cmp.Compare(a.Name, b.Name) }

// Bound brings what was read of a document into the form that [Store] promises:
// frames ordered by name, at most [MaxFramesRead], the newest, and at most
// [MaxWritersRead] writers, those of the highest sequences. It returns what
// exceeds the bounds, for the Problem, keeps it as Excess, and sets Damaged if
// that is frames.
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

// refocus chooses anew which frames a bounded record has, now that the time is
// known: half of them are the last that have begun, so that no number of frames
// in the future takes the place of those that count. The writer that reads
// it is among the writers: without its sequence its writes would seem refused.
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
	slices.SortFunc(all, func(a, b ratelimit.FrameCount) int { // names are of two units
		return cmp.Compare(ratelimit.FrameStart(a.Name), ratelimit.FrameStart(b.Name))
	})
	begun, _ := slices.BinarySearchFunc(all, now.UnixMilli()+1, func(f ratelimit.FrameCount, ms int64) int {
		return cmp.Compare(ratelimit.FrameStart(f.Name), ms)
	})
	first := min(max(begun-MaxFramesRead/2, 0), len(all)-MaxFramesRead)
	r.Frames = all[first : first+MaxFramesRead]
	slices.SortFunc(r.Frames, byName)
}
