package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Exchange implements [syncer.Store]. All items are written and read in one transaction; an item is
// read after it was written.
func (s *Store) Exchange(ctx context.Context, items []syncer.Item) ([]syncer.Result, error) {
	if err := syncer.CheckItems(items); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	results := make([]syncer.Result, len(items))
	var err error
	if slices.ContainsFunc(items, func(it syncer.Item) bool { return it.Write != nil }) {
		err = s.writes.do(ctx, func(w *writeTx) error { return w.exchange(items, results) })
	} else {
		err = s.view(ctx, func(tx *bolt.Tx) error {
			readCounters(tx, items, results)
			return nil
		})
	}
	if err != nil {
		return nil, err // nothing was committed, and what was read may include it
	}
	return results, nil
}

// exchange replaces all results: a change may run more than once.
func (w *writeTx) exchange(items []syncer.Item, results []syncer.Result) error {
	for i, it := range items {
		results[i] = syncer.Result{}
		if it.Write == nil {
			continue
		}
		var err error
		if results[i], err = w.count(it.ID, it.Write); err != nil {
			return err
		}
	}
	readCounters(w.tx, items, results)
	return nil
}

func readCounters(tx *bolt.Tx, items []syncer.Item, results []syncer.Result) {
	for i, it := range items {
		if it.Read {
			results[i].Read, results[i].Record = true, counterRecord(it.ID, bucketOf(tx, countersBucket).Get(counterKey(it.ID)))
		}
	}
}

// count applies one write; the error is that of the transaction. A write that cannot be stored, or
// whose document cannot be read, is rejected alone.
func (w *writeTx) count(id ratelimit.CounterID, write *syncer.Write) (syncer.Result, error) {
	c, refused := w.countable(id, write)
	switch {
	case refused != nil:
		return syncer.Result{Status: syncer.Rejected, Err: refused}, nil //nolint:nilerr // it concerns this write alone
	case !c.meets(write):
		return syncer.Result{Status: syncer.Conflict}, nil
	}
	c.change(write)
	return syncer.Result{Status: syncer.Applied}, w.putCounter(counterKey(id), encodeCounter(c))
}

// countable reads the document, unless the write can never be stored.
func (w *writeTx) countable(id ratelimit.CounterID, write *syncer.Write) (*counter, error) {
	if err := write.Check(); err != nil {
		return nil, err
	}
	key := counterKey(id)
	if len(key) > bolt.MaxKeySize {
		return nil, fmt.Errorf("embedded: the names of the counter have %d bytes", len(key))
	}
	return decodeCounter(bucketOf(w.tx, countersBucket).Get(key))
}

// meets reports whether the condition of the write holds.
func (c *counter) meets(w *syncer.Write) bool {
	if w.Versioned {
		return c.version == w.Version && c.etag == w.Etag
	}
	if c.version == 0 {
		return true
	}
	// Sequences are above 0, which an absent writer and pruned read as.
	return c.frame == w.Frame && c.writers[w.Writer] < w.Seq && c.pruned < w.Seq && c.has(&w.Remove)
}

// has reports whether everything in r is there, with the value that r states.
func (c *counter) has(r *syncer.Removal) bool {
	for _, f := range r.Frames {
		if count, there := c.frames[f.Name]; !there || count != f.Count {
			return false
		}
	}
	for _, x := range r.Writers {
		if seq, there := c.writers[x.Writer]; !there || seq != x.Seq {
			return false
		}
	}
	return true
}

func (c *counter) change(w *syncer.Write) {
	if w.Rewrite {
		clear(c.frames)
	}
	for _, f := range w.Remove.Frames {
		delete(c.frames, f.Name)
	}
	for _, x := range w.Remove.Writers {
		delete(c.writers, x.Writer)
	}
	for _, f := range w.Delta {
		c.frames[f.Name] += f.Count
	}
	c.version++
	c.etag, c.frame = w.NewEtag, w.Frame
	c.writers[w.Writer] = max(c.writers[w.Writer], w.Seq)
	c.pruned = max(c.pruned, w.Pruned)
	if w.Expire.After(c.expire) {
		c.expire = w.Expire
	}
}

// Now implements [store.Backend], with the clock of this machine.
func (s *Store) Now(ctx context.Context) (time.Time, error) { return time.Now(), ctx.Err() }
