package syncer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// reading is one document under way.
type reading struct {
	counter *ratelimit.Counter
	id      ratelimit.CounterID
	limit   ratelimit.Limit
	done    bool
}

// Refresh reads the documents of one key, at once.
func (s *Syncer) Refresh(ctx context.Context, k ratelimit.Key) error {
	return s.loadItems(ctx, s.itemsOf(k))
}

// load reads the documents that are due, in one call. Failures are seen to:
// they are counted, and make the lane wait.
func (s *Syncer) load(ctx context.Context) {
	_ = s.loadItems(ctx, s.reads.take(s.elapsed()+together, s.reads.size(), nil))
}

func (s *Syncer) loadItems(ctx context.Context, items []item) error {
	var all []reading
	for _, it := range items {
		if v, ok := s.counters.BeginRead(it.counter, s.cfg.Now(), it.ticket); ok {
			s.stats.age.note(s.elapsed(), min(v.Age, s.elapsed()-it.added))
			all = append(all, reading{counter: it.counter, id: v.ID, limit: v.Limit})
		}
	}
	if len(all) == 0 {
		return nil
	}
	defer s.rereadAfterPanic(all)
	slices.SortFunc(all, func(a, b reading) int { return compareIDs(a.id, b.id) })
	began := time.Now()
	records, err := s.fetch(ctx, all)
	wait := s.backoff(s.reads, time.Since(began), err)
	for i := range all {
		if err == nil {
			s.merge(&all[i], records[all[i].id])
		}
		all[i].done = true
		s.release(all[i].counter, wait)
	}
	return err
}

// readBeside reads, while writes are under way, the documents of those that
// are not conditional on what is known of them: what the others wrote
// is then known a round trip earlier. The function that it returns waits for the answer
// and takes it over, which must come before the outcomes of the writes.
func (s *Syncer) readBeside(ctx context.Context, jobs []job) (merge func()) {
	var all []reading
	var of []*job
	for i := range jobs {
		if j := &jobs[i]; j.write.Blind {
			all, of = append(all, reading{counter: j.counter, id: j.write.ID, limit: j.limit}), append(of, j)
		}
	}
	if len(all) == 0 {
		return func() {}
	}
	answer := make(chan map[ratelimit.CounterID]*Record, 1)
	go func() {
		var records map[ratelimit.CounterID]*Record
		s.guarded(ctx, "read", func(ctx context.Context) {
			if got, err := s.fetch(ctx, all); err == nil {
				records = got
			}
		})
		answer <- records
	}()
	return func() {
		if records := <-answer; records != nil {
			for i := range all {
				s.merge(&all[i], records[all[i].id])
				of[i].read = true
			}
		}
	}
}

func (s *Syncer) fetch(ctx context.Context, all []reading) (map[ratelimit.CounterID]*Record, error) {
	ids := make([]ratelimit.CounterID, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	byID := make(map[ratelimit.CounterID]*Record, len(ids))
	err := s.call(ctx, OpLoad, len(ids), func(ctx context.Context) error {
		records, err := s.store.Load(ctx, ids)
		for i := range records {
			byID[records[i].ID] = &records[i]
		}
		return err
	})
	return byID, err
}

// merge takes over one document; nil if there is none.
func (s *Syncer) merge(rd *reading, r *Record) {
	doc := ratelimit.Document{}
	if r != nil {
		writers, shared := s.writersOf(r, rd)
		doc = ratelimit.Document{
			Version: r.Version, Etag: r.Etag, Mine: r.Writers[s.id],
			Writers: writers, Shared: shared, Frames: r.Frames,
		}
	}
	m := s.counters.Merge(rd.counter, s.cfg.Now(), doc)
	if m.Lost > 0 {
		s.stats.drift.Add(1)
	}
	if r == nil {
		return
	}
	switch {
	case r.Problem != "":
		s.stats.foreign.Add(1)
		s.complain("a counter document makes no sense", rd.id, fmt.Errorf("%s", r.Problem))
	case m.Foreign > 0:
		s.stats.foreign.Add(1)
		s.complain("a counter document makes no sense", rd.id,
			fmt.Errorf("%d frames that are negative or far in the future", m.Foreign))
	}
}

// writersOf says how many instances are to be reckoned with, this one
// included, and whether others wrote the document lately. Sequences are times,
// so they show it. A document in its first frame has not yet seen all writers
// that will come: 0 then stands for all that are alive. Later half of those are
// expected even if they did not write.
func (s *Syncer) writersOf(r *Record, rd *reading) (writers int, shared bool) {
	now := s.storeTime().UnixMilli()
	lately := now - max(2*rd.limit.Window, 2*time.Second).Milliseconds()
	writers = 1
	for id, seq := range r.Writers {
		if id != s.id && seq >= lately {
			writers++
		}
	}
	shared = writers > 1
	frame := rd.limit.Window.Milliseconds() / int64(rd.limit.Frames)
	for _, f := range r.Frames {
		if ratelimit.FrameStart(f.Name) <= now-frame {
			return max(writers, int(s.stats.instances.Load()+1)/2), shared
		}
	}
	return 0, shared
}
