package embedded

import (
	"context"
	"encoding/json"
	"fmt"
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

func decodeEntry(key, value []byte) (e clientcfg.AuditEntry, err error) {
	if err := json.Unmarshal(value, &e); err != nil {
		return e, fmt.Errorf("%w: audit entry %x: %w", ErrCorrupt, key, err)
	}
	return e, nil
}

// SweepAudit implements [clientcfg.AuditLog]. Entries are in the order of their versions, which is that
// of time as far as the clocks of the writers agree; it stops at the first that is young enough.
func (s *Store) SweepAudit(ctx context.Context, before time.Time) (int, error) {
	return s.sweepTimeline(ctx, timeline{
		bucket: auditBucket,
		due: func(key, value []byte) (bool, error) {
			e, err := decodeEntry(key, value)
			return e.At.Before(before), err
		},
		remove: func(*writeTx, []byte) (int, error) { return 1, nil },
	})
}
