package slab

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"oauth-server/internal/ratelimit"
)

// Bounds of the removals in one write.
const (
	maxRemovedFrames  = 4 * ratelimit.MaxFrames
	MaxRemovedWriters = 32
)

// Observation records how long a part of a document has been seen unchanged.
type Observation struct {
	Print uint64 // fingerprint of the part; 0: none is observed
	mark  int64  // name of the newest frame in the part
	since uint32 // tick at which this state was first seen
}

// Unchanged reports whether a part with count elements and this fingerprint has been seen unchanged
// for at least span milliseconds. If it has changed, the observation starts again.
func (w *Observation) Unchanged(print uint64, count int, ms, span int64) bool {
	if count == 0 {
		*w = Observation{}
		return false
	}
	if w.Print != print {
		w.Print, w.since = print, Tick(ms)
		return false
	}
	return TicksAgo(ms, w.since) >= span
}

// Observe returns the frames of a list, ordered by name, that were seen unchanged for at least span
// milliseconds. When they change, it observes only the older half from then on, because a process
// with a wrong clock may still be counting in the newer half.
func (w *Observation) Observe(list []ratelimit.FrameCount, ms, span int64) []ratelimit.FrameCount {
	upTo := func() []ratelimit.FrameCount {
		n := 0
		for n < len(list) && list[n].Name <= w.mark {
			n++
		}
		return list[:n]
	}
	if len(list) == 0 {
		*w = Observation{}
		return nil
	}
	if w.Print == 0 {
		w.mark = list[len(list)-1].Name
	} else if w.Print != Fingerprint(upTo(), nil) {
		w.mark = list[(len(list)-1)/2].Name
	}
	covered := upTo()
	if !w.Unchanged(Fingerprint(covered, nil), len(covered), ms, span) {
		return nil
	}
	return slices.Clone(covered[:min(len(covered), maxRemovedFrames)])
}

// printSeed is the seed of the fingerprints in this process.
var printSeed = maphash.MakeSeed()

// Fingerprint returns a hash of frames and writers in their order. It is never 0.
func Fingerprint(frames []ratelimit.FrameCount, writers []ratelimit.WriterSeq) uint64 {
	var b []byte
	for _, f := range frames {
		b = binary.LittleEndian.AppendUint64(b, uint64(f.Name))  //nolint:gosec // its bits
		b = binary.LittleEndian.AppendUint64(b, uint64(f.Count)) //nolint:gosec // its bits
	}
	for _, w := range writers {
		b = append(append(b, w.Writer...), 0)
		b = binary.LittleEndian.AppendUint64(b, uint64(w.Seq)) //nolint:gosec // its bits
	}
	return maphash.Bytes(printSeed, b) | 1
}
