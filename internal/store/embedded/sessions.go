package embedded

import (
	"context"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateSession implements [grants.Sessions].
func (s *Store) CreateSession(ctx context.Context, session grants.Session) error {
	value := encodeSession(&session)
	return s.writes.do(ctx, func(w *writeTx) error {
		if w.get(sessions, session.Digest[:]) != nil {
			return grants.ErrExists
		}
		return w.putExpiring(sessions, session.Digest[:], value, session.ExpiresAt)
	})
}

// Session implements [grants.Sessions].
func (s *Store) Session(ctx context.Context, d secret.Digest) (session grants.Session, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		value := get(tx, sessions, d[:])
		if value == nil {
			return grants.ErrNotFound
		}
		session, err = decodeSession(d, value)
		return err
	})
	return session, err
}

// DeleteSession implements [grants.Sessions].
func (s *Store) DeleteSession(ctx context.Context, d secret.Digest) error {
	return s.writes.do(ctx, func(w *writeTx) error { return w.deleteExpiring(sessions, d[:]) })
}

// Revoke implements [grants.Revocations].
func (s *Store) Revoke(ctx context.Context, name string, until time.Time) error {
	key := nameKey(name)
	return s.writes.do(ctx, func(w *writeTx) error {
		if value := w.get(revocations, key); value != nil {
			_, _, recorded := open(value)
			if !recorded.Before(until) {
				return nil
			}
			if err := w.delete(expiries, expiryKey(revocations, key, recorded)); err != nil {
				return err
			}
		}
		return w.putExpiring(revocations, key, header(0, until), until)
	})
}

// Revoked implements [grants.Revocations].
func (s *Store) Revoked(ctx context.Context, names ...string) (yes bool, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		for _, name := range names {
			yes = yes || get(tx, revocations, nameKey(name)) != nil
		}
		return nil
	})
	return yes, err
}

// nameKey is the digest of a name that may have come from outside: the same
// length for all, so that no name is too long or too short for a key.
func nameKey(name string) []byte {
	d := secret.DigestOf(name)
	return d[:]
}
