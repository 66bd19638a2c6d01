package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterHot lets many instances count in the same few documents, each as the
// syncer does it: on what it has read, then, after three losses, blindly.
func counterHot(t *testing.T, b Backend) {
	t.Helper()
	const instances, keys, rounds = 24, 4, 10
	errs := make([]error, instances)
	together(instances, func(i int) {
		w := hotWriter{store: b, me: fmt.Sprintf("instance%d", i), known: map[ratelimit.CounterID]syncer.Record{}}
		for range rounds {
			for k := range keys {
				errs[i] = errors.Join(errs[i], w.count(t.Context(), counterID(fmt.Sprintf("hot %d", k))))
			}
		}
	})
	succeed(t, "count", errors.Join(errs...))
	for k := range keys {
		r := load(t, b, counterID(fmt.Sprintf("hot %d", k)))
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
	known map[ratelimit.CounterID]syncer.Record
}

// count adds one, exactly once.
func (h *hotWriter) count(ctx context.Context, id ratelimit.CounterID) error {
	h.seq++
	for tries := 0; ; tries++ {
		k := h.known[id]
		w := syncer.Write{
			ID: id, Version: k.Version, Etag: k.Etag, NewEtag: 1 + rand.Int64N(1<<62), Seq: h.seq,
			Delta: frames(frame, 1), Expire: Epoch, Blind: tries >= 3,
		}
		outcomes, err := h.store.Apply(ctx, h.me, []syncer.Write{w})
		if err != nil {
			return err
		}
		switch outcomes[0].Status {
		case syncer.Applied:
			delete(h.known, id)
			if !w.Blind {
				h.known[id] = syncer.Record{Version: w.Version + 1, Etag: w.NewEtag}
			}
			return nil
		case syncer.Conflict, syncer.Unknown:
		case syncer.Rejected:
			return fmt.Errorf("%+v was rejected: %w", w, outcomes[0].Err)
		}
		if done, err := h.read(ctx, id); err != nil || done {
			return err
		}
	}
}

// read takes over the document and reports whether our write is in it.
func (h *hotWriter) read(ctx context.Context, id ratelimit.CounterID) (done bool, err error) {
	records, err := h.store.Load(ctx, []ratelimit.CounterID{id})
	if err != nil || len(records) == 0 {
		delete(h.known, id)
		return false, err
	}
	h.known[id] = records[0]
	return records[0].Writers[h.me] >= h.seq, nil
}
