package syncer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// MaxWriters bounds the writers of a document besides those of live instances.
// What exceeds it leaves the document, the oldest sequence first, and pruned
// keeps any write of such a writer from being applied later.
const MaxWriters = 512

// surplusAtOnce bounds how many of them one write removes.
const surplusAtOnce = 100

// document is a record as the counters need it.
func (s *Syncer) document(r *Record, task *ratelimit.Task) *ratelimit.Document {
	now, own := s.clock.Now(), s.identity.writer(task.Pending)
	r.chooseFrames(now, own)
	d := &ratelimit.Document{
		Version: r.Version, Etag: r.Etag, Frame: r.Frame, Pruned: r.Pruned,
		Frames: r.Frames, Damaged: r.Damaged,
		Mine: r.Writers[own],
	}
	s.countWriters(d, r, task, now.UnixMilli())
	if alive := s.alive.Load(); alive != nil {
		s.silentWriters(d, r, *alive, now.UnixMilli())
	}
	return d
}

// countWriters finds how many processes may hold counts back. A document in its
// first frame has not yet seen all that will come: 0 then stands for all that
// are alive. Later half of those are expected even if they did not write.
func (s *Syncer) countWriters(d *ratelimit.Document, r *Record, task *ratelimit.Task, now int64) {
	lately := now - max(2*task.Limit.Window, 2*time.Second).Milliseconds()
	writers := 1
	for id, seq := range r.Writers {
		if seqTime(seq) >= lately && !s.identity.own(id) {
			writers++
		}
	}
	d.Contended = writers > 1
	frame := task.Limit.Window.Milliseconds() / int64(task.Limit.Frames)
	if slices.ContainsFunc(r.Frames, func(f ratelimit.FrameCount) bool { return ratelimit.FrameStart(f.Name) <= now-frame }) {
		d.Writers = max(writers, (s.stats.live()+1)/2)
	}
}

// silentWriters lists the writers of processes that are not alive, and those of
// them that are too many. None is removed as one too many whose sequence is in the
// future: pruned would keep the writes of all from being applied until then.
func (s *Syncer) silentWriters(d *ratelimit.Document, r *Record, alive map[string]bool, now int64) {
	var past []ratelimit.WriterSeq
	for _, id := range slices.Sorted(maps.Keys(r.Writers)) {
		if alive[id] || s.identity.own(id) {
			continue
		}
		w := ratelimit.WriterSeq{Writer: id, Seq: r.Writers[id]}
		d.Silent = append(d.Silent, w)
		if seqTime(w.Seq) < now {
			past = append(past, w)
		}
	}
	if extra := min(len(d.Silent)-MaxWriters, len(past)); extra > 0 {
		slices.SortStableFunc(past, func(a, b ratelimit.WriterSeq) int { return cmp.Compare(a.Seq, b.Seq) })
		d.Surplus = past[:min(extra, surplusAtOnce)]
		d.Silent = nil // the others have their turn when there are fewer
	}
}
