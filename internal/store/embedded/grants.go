package embedded

import (
	"bytes"
	"context"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// CreateCode implements [grants.Codes].
func (s *Store) CreateCode(ctx context.Context, c grants.Code) error {
	value := encodeCode(&c)
	return s.writes.do(ctx, func(w *writeTx) error {
		return w.add(place{codes, c.Digest}, value)
	})
}

// Code implements [grants.Codes].
func (s *Store) Code(ctx context.Context, d secret.Digest) (c grants.Code, err error) {
	err = s.find(ctx, place{codes, d}, func(value []byte) (err error) {
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
		return w.add(place{refreshTokens, t.Digest}, value)
	})
}

// RefreshToken implements [grants.RefreshTokens].
func (s *Store) RefreshToken(ctx context.Context, d secret.Digest) (t grants.RefreshToken, err error) {
	err = s.find(ctx, place{refreshTokens, d}, func(value []byte) (err error) {
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

// claim marks the record as claimed and stores the token that it buys, if any, in one transaction. It
// checks everything before it writes.
func (s *Store) claim(ctx context.Context, k kind, d secret.Digest, next *grants.RefreshToken) error {
	var successor []byte
	if next != nil {
		successor = encodeToken(next)
	}
	return s.writes.do(ctx, func(w *writeTx) error {
		value := w.find(place{k, d})
		switch {
		case value == nil:
			return grants.ErrNotFound
		case len(value) < headerSize:
			return ErrCorrupt
		case value[1]&flagClaimed != 0:
			return grants.ErrClaimed
		case next != nil && w.find(place{refreshTokens, next.Digest}) != nil:
			return grants.ErrExists
		}
		claimed := bytes.Clone(value)
		claimed[1] |= flagClaimed
		if err := w.set(place{k, d}, claimed); err != nil || next == nil {
			return err
		}
		return w.set(place{refreshTokens, next.Digest}, successor)
	})
}

// add stores a record unless there is one.
func (w *writeTx) add(p place, value []byte) error {
	if w.find(p) != nil {
		return grants.ErrExists
	}
	return w.set(p, value)
}
