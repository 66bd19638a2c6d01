package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// clientRecord is a client as it is stored. clientcfg.Client cannot be: it excludes its secret from
// JSON.
type clientRecord struct {
	Name           string            `json:"name,omitempty"`
	SecretDigest   secret.Digest     `json:"secret_sha256,omitzero"`
	SecretUsed     time.Time         `json:"secret_used_at,omitzero"`
	Former         formerRecord      `json:"former_secret,omitzero"`
	Public         bool              `json:"public,omitempty"`
	Grants         []clientcfg.Grant `json:"grants"`
	RedirectURIs   []string          `json:"redirect_uris,omitempty"`
	Scopes         []string          `json:"scopes,omitempty"`
	Audience       []string          `json:"audience,omitempty"`
	WithoutPKCE    bool              `json:"without_pkce,omitempty"`
	ResourceServer bool              `json:"resource_server,omitempty"`
	FirstParty     bool              `json:"first_party,omitempty"`
	CreatedAt      time.Time         `json:"created_at"`
	NotBefore      time.Time         `json:"not_before,omitzero"`
	Stamp          secret.Stamp      `json:"stamp,omitzero"`
	Version        int64             `json:"version"`
}

type formerRecord struct {
	Digest secret.Digest `json:"sha256"`
	Until  time.Time     `json:"valid_until"`
	Used   time.Time     `json:"used_at,omitzero"`
}

func encodeClient(c *clientcfg.Client, version int64) ([]byte, error) {
	return json.Marshal(clientRecord{
		Name: c.Name, SecretDigest: c.SecretDigest, SecretUsed: c.SecretUsed, Former: formerRecord(c.Former), Public: c.Public, Grants: c.Grants, RedirectURIs: c.RedirectURIs,
		Scopes: c.Scopes, Audience: c.Audience, WithoutPKCE: c.WithoutPKCE, ResourceServer: c.ResourceServer, FirstParty: c.FirstParty, CreatedAt: c.CreatedAt,
		NotBefore: c.NotBefore, Stamp: c.Stamp, Version: version,
	})
}

func decodeClient(id, value []byte) (clientcfg.Client, error) {
	var r clientRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return clientcfg.Client{}, fmt.Errorf("%w: %w", clientcfg.ErrUnreadableClient, err)
	}
	return clientcfg.Client{
		ID: string(id), Name: r.Name, SecretDigest: r.SecretDigest, SecretUsed: r.SecretUsed,
		Former: clientcfg.FormerSecret(r.Former), Public: r.Public, Grants: r.Grants,
		RedirectURIs: r.RedirectURIs, Scopes: r.Scopes, Audience: r.Audience, WithoutPKCE: r.WithoutPKCE,
		ResourceServer: r.ResourceServer, FirstParty: r.FirstParty, CreatedAt: r.CreatedAt, NotBefore: r.NotBefore, Stamp: r.Stamp, Version: r.Version,
	}, nil
}

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
	value, err := encodeClient(&c, 1)
	if err != nil {
		return err
	}
	return s.changeClient(ctx, c.ID, func(w *writeTx) error {
		if w.get(clients, []byte(c.ID)) != nil {
			return fmt.Errorf("%w: %s", clientcfg.ErrExists, c.ID)
		}
		return w.put(clients, []byte(c.ID), value)
	})
}

// UpdateClient implements [clientcfg.Registry].
func (s *Store) UpdateClient(ctx context.Context, c clientcfg.Client) error {
	value, err := encodeClient(&c, c.Version+1)
	if err != nil {
		return err
	}
	return s.changeClient(ctx, c.ID, func(w *writeTx) error {
		old := w.get(clients, []byte(c.ID))
		if old == nil {
			return fmt.Errorf("%w: %s", clientcfg.ErrNotFound, c.ID)
		}
		stored, err := decodeClient([]byte(c.ID), old)
		if err != nil {
			return err
		}
		if stored.Version != c.Version {
			return fmt.Errorf("%w: %s is at version %d, not %d", clientcfg.ErrConflict, c.ID, stored.Version, c.Version)
		}
		if id := stored.Stamp.ID; id != "" && id != c.Stamp.ID {
			return fmt.Errorf("%w: %s was deleted and created again", clientcfg.ErrConflict, c.ID)
		}
		return w.put(clients, []byte(c.ID), value)
	})
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
	if value, err = encodeClient(&c, c.Version); err != nil {
		return err
	}
	return w.put(clients, []byte(use.ClientID), value)
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
