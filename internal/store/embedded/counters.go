package embedded

import (
	"bytes"
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// Apply implements [syncer.Store]. All writes go into one transaction, each
// with its own outcome; one whose document cannot be read is rejected alone.
func (s *Store) Apply(ctx context.Context, instance string, writes []syncer.Write) ([]syncer.Outcome, error) {
	outcomes := make([]syncer.Outcome, len(writes))
	err := s.writes.do(ctx, func(w *writeTx) error {
		for i := range writes {
			out, err := w.count(instance, &writes[i])
			if err != nil {
				return err
			}
			outcomes[i] = out
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

// count applies one write; the error is that of the transaction.
func (w *writeTx) count(instance string, write *syncer.Write) (syncer.Outcome, error) {
	key := counterKey(write.ID)
	old := w.get(counters, key)
	c, damage := decodeCounter(old)
	if damage != nil {
		return syncer.Outcome{Status: syncer.Rejected, Err: damage}, nil //nolint:nilerr // it is that of this write alone
	}
	if !c.meets(instance, write) {
		return syncer.Outcome{Status: syncer.Conflict}, nil
	}
	c.change(instance, write)
	return syncer.Outcome{Status: syncer.Applied}, w.put(counters, key, encodeCounter(c))
}

// meets reports whether the write's condition holds.
func (c *counter) meets(instance string, w *syncer.Write) bool {
	if w.Blind {
		seq, wrote := c.writers[instance]
		return !wrote || seq < w.Seq
	}
	return c.version == w.Version && c.etag == w.Etag
}

func (c *counter) change(instance string, w *syncer.Write) {
	for _, name := range w.Dead {
		delete(c.frames, name)
	}
	for _, name := range w.Silent {
		delete(c.writers, name)
	}
	for _, f := range w.Delta {
		c.frames[f.Name] += f.Count
	}
	c.version++
	c.etag = w.NewEtag
	c.writers[instance] = w.Seq
	if w.Expire.After(c.expire) {
		c.expire = w.Expire
	}
}

// Load implements [syncer.Store].
func (s *Store) Load(ctx context.Context, ids []ratelimit.CounterID) (records []syncer.Record, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		records = nil
		for _, id := range ids {
			if value := get(tx, counters, counterKey(id)); value != nil {
				records = append(records, counterRecord(id, value))
			}
		}
		return nil
	})
	return records, err
}

func counterRecord(id ratelimit.CounterID, value []byte) syncer.Record {
	c, err := decodeCounter(value)
	if err != nil {
		return syncer.Record{ID: id, Problem: err.Error()}
	}
	frames, problem := c.newestFrames()
	return syncer.Record{ID: id, Version: c.version, Etag: c.etag, Writers: c.writers, Frames: frames, Problem: problem}
}

// Now implements [syncer.Store] with the clock of this machine.
func (s *Store) Now(ctx context.Context) (time.Time, error) { return time.Now(), ctx.Err() }

// sweepCounters removes the counters that expired before now. They change too
// often for an index of when, so it looks at each, in bounded steps.
func (s *Store) sweepCounters(ctx context.Context, now time.Time) (removed int, err error) {
	for from := []byte{}; from != nil && err == nil; {
		var due [][]byte
		err = s.view(ctx, func(tx *bolt.Tx) error {
			due, from = expiredCounters(tx, from, now)
			return nil
		})
		if err == nil && len(due) > 0 {
			var n int
			n, err = s.removeCounters(ctx, due, now)
			removed += n
		}
	}
	return removed, err
}

// counterStep is how many counters one look takes.
const counterStep = 4 * sweepStep

// expiredCounters looks at the counters from a key on, and returns the key to
// go on with, nil at the end.
func expiredCounters(tx *bolt.Tx, from []byte, now time.Time) (due [][]byte, next []byte) {
	cursor := tx.Bucket(buckets[counters]).Cursor()
	k, v := cursor.Seek(from)
	for range counterStep {
		if k == nil {
			return due, nil
		}
		if d, _, expires := open(v); d.err == nil && expires.Before(now) {
			due = append(due, bytes.Clone(k))
		}
		k, v = cursor.Next()
	}
	return due, bytes.Clone(k)
}

func (s *Store) removeCounters(ctx context.Context, due [][]byte, now time.Time) (removed int, err error) {
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		for _, key := range due {
			value := w.get(counters, key)
			if d, _, expires := open(value); d.err != nil || !expires.Before(now) {
				continue // counted in, meanwhile
			}
			if err := w.delete(counters, key); err != nil {
				return fmt.Errorf("counter: %w", err)
			}
			removed++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
