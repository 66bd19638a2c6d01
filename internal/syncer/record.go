package syncer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
)

// MaxWriters bounds the writers of a document, not counting live instances. Writers above the bound
// are removed, the oldest sequence first. pruned is then raised so that no write of a removed
// writer is applied later.
const MaxWriters = 512

// surplusAtOnce is how many surplus writers one write removes at most.
const surplusAtOnce = 100

// document converts a record into the form that the counters need, for the outcome of a task.
func (s *Syncer) document(r *exchange.Record, task *counting.Task) *ratelimit.Document {
	now, own := s.clock.Now(), s.identity.writer(task.Pending)
	bound(r, now, own)
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

// countWriters sets how many processes may hold back counts: the processes that wrote recently, but
// at least half of the live instances. A document in its first frame does not yet have all its
// writers. The number is then 0, which stands for all live instances.
func (s *Syncer) countWriters(d *ratelimit.Document, r *exchange.Record, task *counting.Task, now int64) {
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

// silentWriters sets the writers of processes that are not alive, and the writers above the bound
// of MaxWriters. A writer with a sequence in the future is never removed for being above the bound:
// pruned would then block the writes of all processes until that time.
func (s *Syncer) silentWriters(d *ratelimit.Document, r *exchange.Record, alive map[string]bool, now int64) {
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
		d.Silent = nil // they are removed once there are no longer too many
	}
}
