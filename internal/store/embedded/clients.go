package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
)

// Clients implements [clientcfg.Store].
func (s *Store) Clients(ctx context.Context, each func(clientcfg.Record)) (mark clientcfg.Mark, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		if mark, err = readMark(tx); err != nil {
			return err
		}
		// The file is read in this goroutine only: guard works for no other.
		return clientcfg.DecodeAll(func(add func([2][]byte)) error {
			return tx.Bucket(buckets[clients]).ForEach(func(id, value []byte) error {
				add([2][]byte{bytes.Clone(id), bytes.Clone(value)})
				return nil
			})
		}, func(pair [2][]byte) clientcfg.Record { return readClient(pair[0], pair[1]) }, each)
	})
	return mark, err
}

// ClientsMark implements [clientcfg.Store].
func (s *Store) ClientsMark(ctx context.Context) (mark clientcfg.Mark, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		mark, err = readMark(tx)
		return err
	})
	return mark, err
}

// Client implements [clientcfg.Store].
func (s *Store) Client(ctx context.Context, id string) (c clientcfg.Client, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		value := get(tx, clients, []byte(id))
		if value == nil {
			return fmt.Errorf("%w: %s", clientcfg.ErrNotFound, id)
		}
		c, err = decodeClient([]byte(id), value)
		return err
	})
	return c, err
}

// readMark returns the mark of the last change: the clients' revision counts them.
func readMark(tx *bolt.Tx) (clientcfg.Mark, error) {
	value := get(tx, settings, revisionKey)
	if len(value) != 8 {
		return clientcfg.Mark{}, fmt.Errorf("%w: the clients' revision is missing", ErrCorrupt)
	}
	return clientcfg.Mark{Number: int64(binary.BigEndian.Uint64(value))}, nil //nolint:gosec // a count of changes
}

// changeClient runs change, which is of that client, and increments the revision.
func (s *Store) changeClient(ctx context.Context, id string, change func(w *writeTx) error) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		mark, err := readMark(w.tx)
		if err != nil {
			return err
		}
		if err := change(w); err != nil {
			return err
		}
		next := mark.Number + 1
		s.changed.note(next, id)
		return w.put(settings, revisionKey, binary.BigEndian.AppendUint64(nil, uint64(next))) //nolint:gosec // a count
	})
}

// CreateClient implements [clientcfg.Registry].
func (s *Store) CreateClient(ctx context.Context, c clientcfg.Client) error {
	value := encodeClient(&c, 1)
	return s.changeClient(ctx, c.ID, func(w *writeTx) error {
		if w.get(clients, []byte(c.ID)) != nil {
			return fmt.Errorf("%w: %s", clientcfg.ErrExists, c.ID)
		}
		return w.put(clients, []byte(c.ID), value)
	})
}

// UpdateClient implements [clientcfg.Registry].
func (s *Store) UpdateClient(ctx context.Context, c clientcfg.Client) error {
	value := encodeClient(&c, c.Version+1)
	return s.changeClient(ctx, c.ID, func(w *writeTx) error {
		if err := unchanged(w, &c); err != nil {
			return err
		}
		return w.put(clients, []byte(c.ID), value)
	})
}

// unchanged returns an error unless the client is stored as c was read.
func unchanged(w *writeTx, c *clientcfg.Client) error {
	value := w.get(clients, []byte(c.ID))
	if value == nil {
		return fmt.Errorf("%w: %s", clientcfg.ErrNotFound, c.ID)
	}
	stored, err := decodeClient([]byte(c.ID), value)
	if err != nil {
		return err
	}
	if stored.Version != c.Version {
		return fmt.Errorf("%w: %s is at version %d, not %d", clientcfg.ErrConflict, c.ID, stored.Version, c.Version)
	}
	if stored.Stamp.ID != c.Stamp.ID {
		return fmt.Errorf("%w: %s was deleted and created again", clientcfg.ErrConflict, c.ID)
	}
	return nil
}

// RecordUses implements [clientcfg.SecretUses].
func (s *Store) RecordUses(ctx context.Context, uses []clientcfg.SecretUse) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		for _, use := range uses {
			if err := recordUse(w, use); err != nil {
				return err
			}
		}
		return nil
	})
}

func recordUse(w *writeTx, use clientcfg.SecretUse) error {
	value := w.get(clients, []byte(use.ClientID))
	if value == nil || use.Digest.IsZero() { // which is that of a client without a former secret
		return nil
	}
	c, err := decodeClient([]byte(use.ClientID), value)
	if err != nil { // it stays as it is, and the uses of other clients are stored
		return nil //nolint:nilerr // which clients cannot be read is reported where they are served
	}
	var used *time.Time
	switch use.Digest {
	case c.SecretDigest:
		used = &c.SecretUsed
	case c.Former.Digest:
		used = &c.Former.Used
	}
	if used == nil || !use.At.After(*used) {
		return nil
	}
	*used = use.At
	return w.put(clients, []byte(use.ClientID), encodeClient(&c, c.Version))
}

// DeleteClient implements [clientcfg.Registry].
func (s *Store) DeleteClient(ctx context.Context, id string) error {
	return s.changeClient(ctx, id, func(w *writeTx) error {
		if w.get(clients, []byte(id)) == nil {
			return fmt.Errorf("%w: %s", clientcfg.ErrNotFound, id)
		}
		return w.delete(clients, []byte(id))
	})
}

// DeleteUnchanged implements [clientcfg.Registry].
func (s *Store) DeleteUnchanged(ctx context.Context, c clientcfg.Client) error {
	return s.changeClient(ctx, c.ID, func(w *writeTx) error {
		if err := unchanged(w, &c); err != nil {
			return err
		}
		return w.delete(clients, []byte(c.ID))
	})
}
