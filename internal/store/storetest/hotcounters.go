package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterHot: many instances count in the same few documents, each as the syncer does: first based
// on the document it has read and, after three conflicts, unversioned.
func counterHot(t *testing.T, s fixture) {
	t.Helper()
	const instances, keys, rounds = 24, 4, 10
	errs := make([]error, instances)
	together(instances, func(i int) {
		w := hotWriter{store: s, me: fmt.Sprintf("instance%d", i), known: map[ratelimit.CounterID]*syncer.Record{}}
		for range rounds {
			for k := range keys {
				errs[i] = errors.Join(errs[i], w.count(t.Context(), counterID(fmt.Sprintf("hot %d", k))))
			}
		}
	})
	succeed(t, "count", errors.Join(errs...))
	for k := range keys {
		r := load(t, s, counterID(fmt.Sprintf("hot %d", k)))
		if total(r) != instances*rounds || r.Version != instances*rounds || len(r.Writers) != instances {
			t.Errorf("the count is %d at version %d with %d writers, want %d", total(r), r.Version, len(r.Writers), instances*rounds)
		}
	}
}

// hotWriter is one instance.
type hotWriter struct {
	store syncer.Store
	me    string
	seq   int64
	known map[ratelimit.CounterID]*syncer.Record // nil: no document
}

// count counts one request exactly once, with one exchange per attempt.
func (h *hotWriter) count(ctx context.Context, id ratelimit.CounterID) error {
	h.seq++
	for tries := range 1000 {
		w := adding(h.me, 1)
		if tries < 3 {
			onto(h.known[id], w)
		}
		w.Seq, w.NewEtag = h.seq, 1+rand.Int64N(1<<62)
		results, err := h.store.Exchange(ctx, []syncer.Item{{ID: id, Write: w, Read: true}})
		if err != nil {
			return err
		}
		r := results[0]
		if err := h.consistent(r.Record, w.Seq, r.Status); err != nil {
			return err
		}
		h.known[id] = r.Record
		if r.Status == syncer.Rejected {
			return fmt.Errorf("%+v was rejected: %w", w, r.Err)
		}
		if r.Status == syncer.Applied || r.Record != nil && r.Record.Writers[h.me] >= h.seq {
			return nil
		}
	}
	return fmt.Errorf("%s is never applied", h.me)
}

// consistent reports a document that cannot have existed at any moment: each write of this test
// adds one, and raises the version by one.
func (h *hotWriter) consistent(r *syncer.Record, seq int64, s syncer.Status) error {
	if r == nil {
		return nil // it was read before the write
	}
	if total(r) != r.Version {
		return fmt.Errorf("version %d counts %d", r.Version, total(r))
	}
	if in := r.Writers[h.me]; in > seq || in == seq && s == syncer.Rejected {
		return fmt.Errorf("the sequence in the document is %d, of a write of %d that is %s", in, seq, s)
	}
	return nil
}

// counterReadAndWritten: a record read together with a write is from before or after the write, and
// the sequence of the writer shows which.
func counterReadAndWritten(t *testing.T, s fixture) {
	t.Helper()
	id := counterID("u")
	for seq := int64(1); seq <= 30; seq++ {
		w := adding("me", 1)
		if seq%2 == 0 {
			onto(load(t, s, id), w)
		}
		w.Seq, w.NewEtag = seq, seq
		r := exchange(t, s, syncer.Item{ID: id, Write: w, Read: true})[0]
		if r.Status != syncer.Applied || !r.Read {
			t.Fatalf("write %d got %+v", seq, r)
		}
		var version, in int64
		if r.Record != nil {
			version, in = r.Record.Version, r.Record.Writers["me"]
		}
		whole := version == in && total(r.Record) == in
		if in != seq && in != seq-1 || !whole {
			t.Errorf("beside write %d the document is %+v", seq, r.Record)
		}
	}
}

// counterReadWhileWritten: at whatever moment a read happens, the document is consistent.
func counterReadWhileWritten(t *testing.T, s fixture) {
	t.Helper()
	const writers, rounds = 4, 40
	id := counterID("u")
	var writing atomic.Int64
	writing.Store(writers)
	errs := make([]error, writers+2)
	together(writers+2, func(i int) {
		if i < writers {
			defer writing.Add(-1)
			for seq := int64(1); seq <= rounds && errs[i] == nil; seq++ {
				w := adding(fmt.Sprintf("w%d", i), 1)
				w.Seq, w.NewEtag = seq, 1+rand.Int64N(1<<62)
				errs[i] = insist(t.Context(), s, id, w)
			}
			return
		}
		for last := int64(0); writing.Load() > 0 && errs[i] == nil; {
			results, err := s.Exchange(t.Context(), []syncer.Item{{ID: id, Read: true}})
			if err != nil {
				errs[i] = err
				return
			}
			r := results[0].Record
			if r == nil {
				continue
			}
			var sum int64
			for _, seq := range r.Writers {
				sum += seq
			}
			whole := sum == r.Version && total(r) == r.Version
			if !whole || r.Version < last {
				errs[i] = fmt.Errorf("read %+v after version %d", r, last)
			}
			last = r.Version
		}
	})
	succeed(t, "read and write", errors.Join(errs...))
	if r := load(t, s, id); total(r) != writers*rounds {
		t.Errorf("the document is %+v", r)
	}
}

// insist sends an unversioned write until it is applied: two writes that create the document at the
// same time may refuse each other.
func insist(ctx context.Context, s syncer.Store, id ratelimit.CounterID, w *syncer.Write) error {
	for range 100 {
		results, err := s.Exchange(ctx, []syncer.Item{{ID: id, Write: w}})
		if err != nil || results[0].Status == syncer.Applied {
			return err
		}
		if results[0].Status != syncer.Conflict {
			return fmt.Errorf("%+v is %s: %w", w, results[0].Status, results[0].Err)
		}
	}
	return fmt.Errorf("%+v was never applied", w)
}

// counterRemovedOnce: of many writes that remove the same frame and writer at the same time, one
// succeeds. For the others the frame and writer no longer exist.
func counterRemovedOnce(t *testing.T, s fixture) {
	t.Helper()
	const instances = 16
	before := conditioned(t, s, "u")
	statuses, errs := make([]syncer.Status, instances), make([]error, instances)
	together(instances, func(i int) {
		w := adding(fmt.Sprintf("me%d", i), 1)
		w.Seq, w.NewEtag = 30, int64(100+i)
		w.Remove = syncer.Removal{Frames: frames(old, 3), Writers: []syncer.WriterSeq{{Writer: "a", Seq: 10}}}
		results, err := s.Exchange(t.Context(), []syncer.Item{{ID: before.ID, Write: w}})
		if errs[i] = err; err == nil {
			statuses[i] = results[0].Status
		}
	})
	succeed(t, "exchange", errors.Join(errs...))
	count := map[syncer.Status]int{}
	for _, status := range statuses {
		count[status]++
	}
	equal(t, "statuses", map[syncer.Status]int{syncer.Applied: 1, syncer.Conflict: instances - 1}, count)
	if r := load(t, s, before.ID); total(r) != 10 || r.Version != 3 || len(r.Writers) != 2 {
		t.Errorf("the document is %+v", r)
	}
}
