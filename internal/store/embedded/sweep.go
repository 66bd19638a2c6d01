package embedded

import (
	"bytes"
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// sweepStep bounds how many entries one transaction removes, so that requests get their turn in
// between.
const sweepStep = 256

// timeline is a bucket whose keys are in the order of time. due reports whether an entry is to be
// removed; remove is called after it was, and returns how much that counts for. It may add entries that
// are not due.
type timeline struct {
	bucket []byte
	due    func(key, value []byte) (bool, error)
	remove func(w *writeTx, key []byte) (int, error)
}

// sweepTimeline removes the entries at the start up to the first that is not due. It reads before it
// writes: mostly nothing is due.
func (s *Store) sweepTimeline(ctx context.Context, t timeline) (removed int, err error) {
	for {
		var more bool
		err := s.view(ctx, func(tx *bolt.Tx) (err error) {
			if b := tx.Bucket(t.bucket); b != nil {
				if key, value := b.Cursor().First(); key != nil {
					more, err = t.due(key, value)
				}
			}
			return err
		})
		if err != nil || !more {
			return removed, err
		}
		var n int
		err = s.writes.do(ctx, func(w *writeTx) (err error) {
			n, err = w.sweep(t)
			return err
		})
		if err != nil {
			return removed, err
		}
		removed += n
	}
}

// sweep is one step of sweepTimeline.
func (w *writeTx) sweep(t timeline) (removed int, err error) {
	cursor := w.tx.Bucket(t.bucket).Cursor()
	var last []byte
	for range sweepStep {
		key, value := cursor.First()
		switch {
		case key == nil:
			return removed, nil
		case bytes.Equal(key, last): // bbolt does not find keys that are out of order
			return removed, fmt.Errorf("%w: entry %x of %s cannot be removed", ErrCorrupt, key, t.bucket)
		}
		last = bytes.Clone(key)
		if due, err := t.due(key, value); err != nil || !due {
			return removed, err
		}
		w.touched, w.dirty = true, true
		if err := cursor.Delete(); err != nil {
			return removed, fmt.Errorf("embedded: delete from %s: %w", t.bucket, err)
		}
		n, err := t.remove(w, last)
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}
