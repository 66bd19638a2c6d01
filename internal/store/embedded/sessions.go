package embedded

import (
	"context"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateSession implements [grants.Sessions].
func (s *Store) CreateSession(ctx context.Context, session grants.Session, most int) error {
	value := encodeSession(&session)
	return s.writes.do(ctx, func(w *writeTx) error {
		if err := w.add(place{sessions, session.Digest}, value); err != nil {
			return err
		}
		if err := w.endOldest(session.Username, most-1); err != nil {
			return err
		}
		return w.indexSession(&session)
	})
}

// Session implements [grants.Sessions].
func (s *Store) Session(ctx context.Context, d secret.Digest) (session grants.Session, err error) {
	err = s.find(ctx, place{sessions, d}, func(value []byte) (err error) {
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
	return s.writes.do(ctx, func(w *writeTx) error {
		if p := (place{sessions, d}); w.find(p) != nil {
			return w.set(p, nil)
		}
		return nil
	})
}

// Revoke implements [grants.Revocations].
func (s *Store) Revoke(ctx context.Context, name string, until time.Time) error {
	p, value := placeOfName(name), header(0, until)
	return s.writes.do(ctx, func(w *writeTx) error {
		if recorded := w.find(p); recorded == nil || expiryOf(recorded).Before(until) {
			return w.set(p, value)
		}
		return nil
	})
}

// RecordOnce implements [grants.Revocations].
func (s *Store) RecordOnce(ctx context.Context, name string, until time.Time) error {
	return s.writes.do(ctx, func(w *writeTx) error { return w.add(placeOfName(name), header(0, until)) })
}

// Revoked implements [grants.Revocations].
func (s *Store) Revoked(ctx context.Context, names ...string) (yes bool, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) error {
		yes = slices.ContainsFunc(names, func(name string) bool {
			p := placeOfName(name)
			return get(tx, p.kind, p.digest[:]) != nil
		})
		return nil
	})
	return yes, err
}

// placeOfName returns the place of a revocation. Names may come from outside; their digests all have
// the same length, so none is too long or too short for a key.
func placeOfName(name string) place { return place{revocations, secret.DigestOf(name)} }
