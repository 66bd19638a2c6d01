package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
)

// policiesKey is the key of the version of the policies, in 8 bytes: that of the newest entry, also
// when that was swept.
var policiesKey = []byte("policies")

// auditBucket holds the trail: under the version, big-endian, the entry as JSON. It is created with the
// first entry, because files of earlier releases have none.
var auditBucket = []byte("audit")

// policiesBucket holds what the trail comes to: under a target, the version of the entry that last
// changed it, in 8 bytes, and its value. Every entry is folded in the transaction that adds it. It is
// created with the trail.
var policiesBucket = []byte("policies")

// PolicyVersion implements [clientcfg.PolicyStore].
func (s *Store) PolicyVersion(ctx context.Context) (newest clientcfg.PolicyVersion, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		newest, err = newestEntry(tx)
		return err
	})
	return newest, err
}

// newestEntry returns which entry is the newest. Its ID is empty if the entry is not in the trail any
// more, or has none at its beginning.
func newestEntry(tx *bolt.Tx) (newest clientcfg.PolicyVersion, err error) {
	if newest.Number, err = policyVersion(get(tx, settings, policiesKey)); err != nil {
		return newest, err
	}
	if trail := tx.Bucket(auditBucket); trail != nil {
		newest.ID = idOf(trail.Get(versionKey(newest.Number)))
	}
	return newest, nil
}

// idOf reads the ID of a stored entry, and no more of it than it must: it may be long, and is looked at
// every second.
func idOf(entry []byte) (id string) {
	d := json.NewDecoder(bytes.NewReader(entry))
	if _, err := d.Token(); err != nil { // {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		var other json.RawMessage
		value := any(&other)
		if name == "id" {
			value = &id
		}
		if err := d.Decode(value); err != nil || name == "id" {
			return id
		}
	}
	return ""
}

// policyVersion reads a version; that of nothing is 0.
func policyVersion(value []byte) (int64, error) {
	switch len(value) {
	case 0:
		return 0, nil
	case 8:
		return int64(binary.BigEndian.Uint64(value)), nil //nolint:gosec // as versionKey wrote it
	}
	return 0, fmt.Errorf("%w: a version of %d bytes", clientcfg.ErrUnreadable, len(value))
}

func versionKey(version int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(version)) //nolint:gosec // counts changes, never negative
}

// PolicyState implements [clientcfg.PolicyStore]. Every entry is folded already, so it reads none.
func (s *Store) PolicyState(ctx context.Context) (state clientcfg.PolicyState, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		newest, err := newestEntry(tx)
		if err != nil {
			return err
		}
		state = clientcfg.PolicyState{Version: newest.Number, ID: newest.ID, Targets: map[string]clientcfg.TargetValue{}}
		targets := tx.Bucket(policiesBucket)
		if targets == nil {
			return nil
		}
		return targets.ForEach(func(target, value []byte) error {
			if len(value) < 8 {
				return fmt.Errorf("%w: target %q has %d bytes", ErrCorrupt, target, len(value))
			}
			version, err := policyVersion(value[:8])
			state.Targets[string(target)] = clientcfg.TargetValue{Version: version, Value: bytes.Clone(value[8:])}
			return err
		})
	})
	return state, err
}

// entriesAtOnce bounds what PolicyEntries returns.
const entriesAtOnce = 64

// PolicyEntries implements [clientcfg.PolicyStore].
func (s *Store) PolicyEntries(ctx context.Context, from int64) (entries []clientcfg.PolicyEntry, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		entries = nil
		trail := tx.Bucket(auditBucket)
		if trail == nil {
			return nil
		}
		c := trail.Cursor()
		for k, value := c.Seek(versionKey(max(from, 0))); k != nil && len(entries) < entriesAtOnce; k, value = c.Next() {
			version, err := policyVersion(k)
			if err != nil {
				return err
			}
			entries = append(entries, clientcfg.ReadPolicyEntry(value, version, idOf(value)))
		}
		return nil
	})
	return entries, err
}

// AppendPolicyEntry implements [clientcfg.PolicyStore].
func (s *Store) AppendPolicyEntry(ctx context.Context, entry clientcfg.PolicyEntry) error {
	stored, err := clientcfg.EncodePolicyEntry(&entry)
	if err != nil {
		return err
	}
	key := versionKey(entry.Version)
	return s.writes.do(ctx, func(w *writeTx) error {
		version, err := policyVersion(w.get(settings, policiesKey))
		if err != nil {
			return err
		}
		if version != entry.Version-1 {
			return fmt.Errorf("%w: version %d is stored, not %d", clientcfg.ErrPolicyConflict, version, entry.Version-1)
		}
		if err := w.put(settings, policiesKey, key); err != nil {
			return err
		}
		trail, err := w.tx.CreateBucketIfNotExists(auditBucket)
		if err != nil {
			return fmt.Errorf("embedded: make the audit trail: %w", err)
		}
		trail.FillPercent = 0.9 // its keys only grow
		if err := trail.Put(key, stored); err != nil {
			return fmt.Errorf("embedded: put into the audit trail: %w", err)
		}
		return w.fold(&entry)
	})
}

// fold gives the targets the values that an entry gives them.
func (w *writeTx) fold(e *clientcfg.PolicyEntry) error {
	targets, err := w.tx.CreateBucketIfNotExists(policiesBucket)
	if err != nil {
		return fmt.Errorf("embedded: make the policies: %w", err)
	}
	for i := range e.Changes {
		switch c := &e.Changes[i]; {
		case !c.IsState():
		case c.IsNull():
			err = errors.Join(err, targets.Delete([]byte(c.Target)))
		default:
			err = errors.Join(err, targets.Put([]byte(c.Target), append(versionKey(e.Version), c.After...)))
		}
	}
	if err != nil {
		return fmt.Errorf("embedded: fold entry %d: %w", e.Version, err)
	}
	return nil
}
