package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
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
			version, err := policyVersion(k)
			if err != nil {
				return err
			}
			e := clientcfg.ShowPolicyEntry(value, version)
			if q.Target == "" || slices.Contains(e.Targets(), q.Target) {
				entries = append(entries, e)
			}
		}
		return nil
	})
	return entries, err
}

// newest moves the cursor to the last entry, or to the last before a version, and returns it.
func newest(c *bolt.Cursor, before int64) (key, value []byte) {
	if before <= 0 {
		return c.Last()
	}
	if k, _ := c.Seek(versionKey(before)); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// timeOf reads when a change was made; false if that cannot be read.
func timeOf(entry []byte) (at time.Time, ok bool) {
	var e struct{ At time.Time }
	err := json.Unmarshal(entry, &e)
	return e.At, err == nil && !e.At.IsZero()
}

// SweepAudit implements [clientcfg.AuditLog]. Entries are in the order of their versions, which is that
// of time as far as the clocks of the writers agree.
func (s *Store) SweepAudit(ctx context.Context, before, now time.Time) (int, error) {
	var last []byte // the key of the last that is due
	err := s.view(ctx, func(tx *bolt.Tx) error {
		last = nil
		trail := tx.Bucket(auditBucket)
		if trail == nil {
			return nil
		}
		c := trail.Cursor()
		for key, value := c.First(); key != nil; key, value = c.Next() {
			switch at, ok := timeOf(value); {
			case !ok, at.After(now):
			case !at.Before(before):
				return nil
			default:
				last = bytes.Clone(key)
			}
		}
		return nil
	})
	if err != nil || last == nil {
		return 0, err
	}
	return s.sweepTimeline(ctx, timeline{
		bucket: auditBucket,
		due:    func(key, _ []byte) (bool, error) { return bytes.Compare(key, last) <= 0, nil },
		remove: func(*writeTx, []byte) (int, error) { return 1, nil },
	})
}
