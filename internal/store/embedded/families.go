package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// placeOfFamily returns the place of a family: among the refresh tokens of earlier releases, so that it
// needs no bucket of its own. It is not the digest itself, under which there may be the token that the
// family began with.
func placeOfFamily(d secret.Digest) place {
	return place{refreshTokens, secret.DigestOf("family " + string(d[:]))}
}

// CreateFamily implements [grants.Families].
func (s *Store) CreateFamily(ctx context.Context, f grants.Family) error {
	value := encodeFamily(&f)
	return s.writes.do(ctx, func(w *writeTx) error { return w.add(placeOfFamily(f.Digest), value) })
}

// Family implements [grants.Families].
func (s *Store) Family(ctx context.Context, d secret.Digest) (f grants.Family, err error) {
	err = s.find(ctx, placeOfFamily(d), func(value []byte) (err error) {
		if value == nil {
			return grants.ErrNotFound
		}
		f, err = decodeFamily(d, value)
		return err
	})
	return f, err
}

// RotateFamily implements [grants.Families]. It rewrites the record where it is, and nothing else: the
// entry in the expiry index stays, and the sweep that comes to it files the record again.
func (s *Store) RotateFamily(ctx context.Context, next grants.Family) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		p := placeOfFamily(next.Digest)
		value := w.find(p)
		if value == nil {
			return grants.ErrNotFound
		}
		stored, err := decodeFamily(next.Digest, value)
		switch {
		case err != nil:
			return err
		case stored.Generation+1 != next.Generation:
			return grants.ErrClaimed
		}
		stored.Generation, stored.IssuedAt, stored.ExpiresAt = next.Generation, next.IssuedAt, next.ExpiresAt
		stored.ClientStamp = next.ClientStamp
		return w.put(p.kind, p.digest[:], encodeFamily(&stored))
	})
}

func encodeFamily(f *grants.Family) []byte {
	b := header(0, f.ExpiresAt)
	b = appendTime(b, f.IssuedAt)
	b = binary.AppendUvarint(b, uint64(f.Generation))
	b = appendAuthorization(b, &f.Authorization)
	return appendStamp(appendStamp(b, f.ClientStamp), f.UserStamp)
}

func decodeFamily(digest secret.Digest, value []byte) (grants.Family, error) {
	d, _, expires := open(value)
	f := grants.Family{Digest: digest, ExpiresAt: expires, IssuedAt: d.time()}
	generation := d.length()
	if generation > math.MaxUint32 {
		d.fail("a family of generation %d", generation)
	}
	f.Generation, f.Authorization = uint32(generation), d.authorization() //nolint:gosec // compared above
	f.ClientStamp, f.UserStamp = d.stamp(), d.stamp()
	if err := d.finish(); err != nil {
		return grants.Family{}, fmt.Errorf("read family: %w", err)
	}
	return f, nil
}
