package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
)

// policiesKey is the key of the policy set: its version in 8 bytes, so that it can be read alone, then
// the set as JSON.
var policiesKey = []byte("policies")

// auditBucket holds the trail: under the version, big-endian, the entry as JSON. It is created with the
// first entry, because files of earlier releases have none.
var auditBucket = []byte("audit")

// PolicySet implements [clientcfg.PolicyStore].
func (s *Store) PolicySet(ctx context.Context) (set clientcfg.PolicySet, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		value := get(tx, settings, policiesKey)
		if value == nil {
			return nil
		}
		version, err := policyVersion(value)
		if err != nil {
			return err
		}
		set, err = clientcfg.DecodePolicySet(value[8:])
		if err == nil && set.Version != version {
			err = fmt.Errorf("%w: version %d is marked as %d", clientcfg.ErrUnreadable, set.Version, version)
		}
		return err
	})
	return set, err
}

// PolicyVersion implements [clientcfg.PolicyStore].
func (s *Store) PolicyVersion(ctx context.Context) (version int64, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		version, err = policyVersion(get(tx, settings, policiesKey))
		return err
	})
	return version, err
}

// policyVersion reads the version in front of the set; without a set it is 0.
func policyVersion(value []byte) (int64, error) {
	switch {
	case value == nil:
		return 0, nil
	case len(value) < 8:
		return 0, fmt.Errorf("%w: %d bytes", clientcfg.ErrUnreadable, len(value))
	}
	return int64(binary.BigEndian.Uint64(value)), nil //nolint:gosec // as versionKey wrote it
}

func versionKey(version int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(version)) //nolint:gosec // counts changes, never negative
}

// ReplacePolicySet implements [clientcfg.PolicyStore].
func (s *Store) ReplacePolicySet(ctx context.Context, next clientcfg.PolicySet, entry clientcfg.AuditEntry) error {
	set, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("embedded: encode the policies: %w", err)
	}
	logged, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("embedded: encode the audit entry: %w", err)
	}
	key := versionKey(next.Version)
	return s.writes.do(ctx, func(w *writeTx) error {
		version, err := policyVersion(w.get(settings, policiesKey))
		if err != nil {
			return err
		}
		if version != next.Version-1 {
			return fmt.Errorf("%w: version %d is stored, not %d", clientcfg.ErrPolicyConflict, version, next.Version-1)
		}
		if err := w.put(settings, policiesKey, append(bytes.Clone(key), set...)); err != nil {
			return err
		}
		trail, err := w.tx.CreateBucketIfNotExists(auditBucket)
		if err != nil {
			return fmt.Errorf("embedded: make the audit trail: %w", err)
		}
		trail.FillPercent = 0.9 // its keys only grow
		if err := trail.Put(key, logged); err != nil {
			return fmt.Errorf("embedded: put into the audit trail: %w", err)
		}
		return nil
	})
}
