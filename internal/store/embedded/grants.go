package embedded

import (
	"bytes"
	"context"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateCode implements [grants.Codes].
func (s *Store) CreateCode(ctx context.Context, c grants.Code) error {
	value := encodeCode(&c)
	return s.writes.do(ctx, func(w *writeTx) error {
		if w.get(codes, c.Digest[:]) != nil {
			return grants.ErrExists
		}
		return w.putExpiring(codes, c.Digest[:], value, c.ExpiresAt)
	})
}

// Code implements [grants.Codes].
func (s *Store) Code(ctx context.Context, d secret.Digest) (c grants.Code, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		value := get(tx, codes, d[:])
		if value == nil {
			return grants.ErrNotFound
		}
		c, err = decodeCode(d, value)
		return err
	})
	return c, err
}

// RedeemCode implements [grants.Codes].
func (s *Store) RedeemCode(ctx context.Context, d secret.Digest, next *grants.RefreshToken) error {
	return s.claim(ctx, codes, d, next)
}

// CreateRefreshToken implements [grants.RefreshTokens].
func (s *Store) CreateRefreshToken(ctx context.Context, t grants.RefreshToken) error {
	value := encodeToken(&t)
	return s.writes.do(ctx, func(w *writeTx) error {
		if w.get(refreshTokens, t.Digest[:]) != nil {
			return grants.ErrExists
		}
		return w.putExpiring(refreshTokens, t.Digest[:], value, t.ExpiresAt)
	})
}

// RefreshToken implements [grants.RefreshTokens].
func (s *Store) RefreshToken(ctx context.Context, d secret.Digest) (t grants.RefreshToken, err error) {
	err = s.view(ctx, func(tx *bolt.Tx) (err error) {
		value := get(tx, refreshTokens, d[:])
		if value == nil {
			return grants.ErrNotFound
		}
		t, err = decodeToken(d, value)
		return err
	})
	return t, err
}

// RotateRefreshToken implements [grants.RefreshTokens].
func (s *Store) RotateRefreshToken(ctx context.Context, d secret.Digest, next grants.RefreshToken) error {
	return s.claim(ctx, refreshTokens, d, &next)
}

// claim marks the record as claimed and stores the token that it buys, if any,
// in one transaction. All that can fail is checked before anything is written.
func (s *Store) claim(ctx context.Context, k kind, d secret.Digest, next *grants.RefreshToken) error {
	var successor []byte
	if next != nil {
		successor = encodeToken(next)
	}
	return s.writes.do(ctx, func(w *writeTx) error {
		value := w.get(k, d[:])
		switch {
		case value == nil:
			return grants.ErrNotFound
		case len(value) < headerSize:
			return ErrCorrupt
		case value[1]&flagClaimed != 0:
			return grants.ErrClaimed
		case next != nil && w.get(refreshTokens, next.Digest[:]) != nil:
			return grants.ErrExists
		}
		claimed := bytes.Clone(value)
		claimed[1] |= flagClaimed
		if err := w.put(k, d[:], claimed); err != nil || next == nil {
			return err
		}
		return w.putExpiring(refreshTokens, next.Digest[:], successor, next.ExpiresAt)
	})
}
