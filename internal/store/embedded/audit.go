package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
)

// Audit implements [clientcfg.AuditLog].
func (s *Store) Audit(ctx context.Context, q clientcfg.AuditQuery) (entries []clientcfg.AuditEntry, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		entries = nil
		trail := tx.Bucket(auditBucket)
		if trail == nil {
			return nil
		}
		c := trail.Cursor()
		for k, value := newest(c, q.Before); k != nil && (q.Limit == 0 || len(entries) < q.Limit); k, value = c.Prev() {
			e, err := decodeEntry(k, value)
			if err != nil {
				return err
			}
			if q.Target == "" || q.Target == e.Target {
				entries = append(entries, e)
			}
		}
		return nil
	})
	return entries, err
}

// newest places the cursor on the last entry, or the last of a lower version.
func newest(c *bolt.Cursor, before int64) (key, value []byte) {
	if before <= 0 {
		return c.Last()
	}
	if k, _ := c.Seek(versionKey(before)); k == nil {
		return c.Last()
	}
	return c.Prev()
}

func decodeEntry(key, value []byte) (e clientcfg.AuditEntry, err error) {
	if err := json.Unmarshal(value, &e); err != nil {
		return e, fmt.Errorf("%w: audit entry %x: %w", ErrCorrupt, key, err)
	}
	return e, nil
}

// SweepAudit implements [clientcfg.AuditLog]. Entries lie in the order of
// their versions, which is that of time but for what clocks differ; it stops
// at the first that is young enough.
func (s *Store) SweepAudit(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	for {
		n, err := s.sweepAuditStep(ctx, before)
		removed += n
		if err != nil || n < sweepStep {
			return removed, err
		}
	}
}

func (s *Store) sweepAuditStep(ctx context.Context, before time.Time) (removed int, err error) {
	if due, err := s.auditDue(ctx, before); err != nil || !due {
		return 0, err
	}
	err = s.writes.do(ctx, func(w *writeTx) error {
		removed = 0 // a change may run more than once
		c := w.tx.Bucket(auditBucket).Cursor()
		for k, value := c.First(); k != nil && removed < sweepStep; k, value = c.First() {
			e, err := decodeEntry(k, value)
			if err != nil {
				return err
			}
			if !e.At.Before(before) {
				return nil
			}
			w.touched, w.dirty = true, true
			if err := c.Delete(); err != nil {
				return fmt.Errorf("embedded: delete from the audit trail: %w", err)
			}
			removed++
		}
		return nil
	})
	if err != nil {
		removed = 0
	}
	return removed, err
}

// auditDue reports whether the oldest entry is older than that.
func (s *Store) auditDue(ctx context.Context, before time.Time) (due bool, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		due = false
		trail := tx.Bucket(auditBucket)
		if trail == nil {
			return nil
		}
		if k, value := trail.Cursor().First(); k != nil {
			e, err := decodeEntry(k, value)
			due = e.At.Before(before)
			return err
		}
		return nil
	})
	return due, err
}
