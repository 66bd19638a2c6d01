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
func (s *Store) RedeemCode(ctx context.Context, d secret.Digest, first *grants.Family) error {
	return s.claim(ctx, place{codes, d}, first)
}

// claim marks the record as claimed and stores the family that begins with it, if any, in one
// transaction. It checks everything before it writes.
func (s *Store) claim(ctx context.Context, p place, first *grants.Family) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		value := w.find(p)
		switch {
		case value == nil:
			return grants.ErrNotFound
		case len(value) < headerSize:
			return ErrCorrupt
		case value[1]&flagClaimed != 0:
			return grants.ErrClaimed
		case first != nil && w.find(placeOfFamily(first.Digest)) != nil:
			return grants.ErrExists
		}
		claimed := bytes.Clone(value)
		claimed[1] |= flagClaimed
		if err := w.set(p, claimed); err != nil || first == nil {
			return err
		}
		return w.set(placeOfFamily(first.Digest), encodeFamily(first))
	})
}

// add stores a record unless there is one.
func (w *writeTx) add(p place, value []byte) error {
	if w.find(p) != nil {
		return grants.ErrExists
	}
	return w.set(p, value)
}
