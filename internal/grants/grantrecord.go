package grants

import (
	"context"
	"errors"
	"slices"
	"time"

	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// grantTable has authorization codes and families. A code and its family have the same digest and
// share one record, so claiming the code and storing the family is one write. In a bbolt file the
// table has no index by owner, because an index would make redeeming a code 60 % more expensive.
var grantTable = store.Table{Name: "grants"}

// grant is a record of the table: a code, a claimed code, a claimed code with its family, or a
// family that began without a code.
type grant struct {
	Authorization
	key         string
	clientStamp secret.Stamp
	issued      time.Time // when the newest refresh token was issued, or the code if there is no family
	kept        time.Time // how long the record is stored: the later end of code and family
	redirectURI string    // this and challenge: only for an unclaimed code
	challenge   string
	claimed     bool      // the record began with a code, and the code was claimed
	generation  uint32    // of the newest refresh token; 0 means no family
	until       time.Time // when the newest refresh token expires
}

func encodeGrant(g *grant) (store.Record, error) {
	return store.Record{Key: g.key, Value: grantValue(g), Owner: g.Username, Expires: g.kept}, nil
}

func decodeGrant(r *store.Record) (g grant, err error) {
	g.key, g.Username, g.kept = r.Key, r.Owner, r.Expires
	err = readGrant(r.Value, &g)
	return g, err
}

// grantRecords implements [Codes], [Families] and part of [SignIns].
type grantRecords struct{ table store.Collection[grant] }

func newGrantRecords(b store.Backend) grantRecords {
	return grantRecords{store.Collection[grant]{Backend: b, Table: grantTable, Encode: encodeGrant, Decode: decodeGrant}}
}

func (c *Code) grant() grant {
	return grant{
		Authorization: c.Authorization, key: c.Digest.Key(), clientStamp: c.ClientStamp, issued: c.IssuedAt, kept: c.ExpiresAt,
		redirectURI: c.RedirectURI, challenge: c.Challenge, claimed: c.Claimed,
	}
}

func (f *Family) grant() grant {
	return grant{
		Authorization: f.Authorization, key: f.Digest.Key(), clientStamp: f.ClientStamp, issued: f.IssuedAt,
		kept: later(f.stored.kept, f.ExpiresAt), claimed: f.stored.claimed, generation: f.Generation, until: f.ExpiresAt,
	}
}

func (g *grant) family(seen store.Seen) Family {
	return Family{
		Authorization: g.Authorization, Generation: g.generation, IssuedAt: g.issued, ExpiresAt: g.until, ClientStamp: g.clientStamp,
		stored: storedFamily{seen: seen, claimed: g.claimed, kept: g.kept},
	}
}

// create stores a new record. It returns ErrExists if the key is taken.
func (r grantRecords) create(ctx context.Context, g grant) error {
	_, err := r.table.Put(ctx, &g, store.Seen{})
	if errors.Is(err, store.ErrConflict) {
		return ErrExists
	}
	return err
}

// get reads a record. Errors: ErrNotFound.
func (r grantRecords) get(ctx context.Context, d secret.Digest) (grant, store.Seen, error) {
	g, seen, err := r.table.Get(ctx, d.Key())
	if errors.Is(err, store.ErrNotFound) {
		err = ErrNotFound
	}
	return g, seen, err
}

// CreateCode implements [Codes].
func (r grantRecords) CreateCode(ctx context.Context, c Code) error { return r.create(ctx, c.grant()) }

// Code implements [Codes].
func (r grantRecords) Code(ctx context.Context, d secret.Digest) (Code, error) {
	g, seen, err := r.get(ctx, d)
	if err == nil && g.generation > 0 && !g.claimed {
		err = ErrNotFound // a family of the password grant
	}
	if err != nil {
		return Code{}, err
	}
	return Code{
		Authorization: g.Authorization, Digest: d, RedirectURI: g.redirectURI, Challenge: g.challenge,
		IssuedAt: g.issued, ExpiresAt: g.kept, Claimed: g.claimed, ClientStamp: g.clientStamp, seen: seen,
	}, nil
}

// RedeemCode implements [Codes].
func (r grantRecords) RedeemCode(ctx context.Context, c Code, first *Family) error {
	if c.Claimed {
		return ErrClaimed
	}
	g := c.grant()
	if first != nil {
		g = first.grant()
		g.kept = later(c.ExpiresAt, first.ExpiresAt)
	}
	g.claimed, g.redirectURI, g.challenge = true, "", ""
	_, err := r.table.Put(ctx, &g, c.seen)
	if errors.Is(err, store.ErrConflict) { // only a claim changes a code
		if _, err := r.Code(ctx, c.Digest); err != nil {
			return err
		}
		return ErrClaimed
	}
	return err
}

// CreateFamily implements [Families].
func (r grantRecords) CreateFamily(ctx context.Context, f Family) error {
	return r.create(ctx, f.grant())
}

// Family implements [Families].
func (r grantRecords) Family(ctx context.Context, d secret.Digest) (Family, error) {
	g, seen, err := r.get(ctx, d)
	if err == nil && g.generation == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Family{}, err
	}
	f := g.family(seen)
	f.Digest = d
	return f, nil
}

// RotateFamily implements [Families]. It compares generations, not record states, because another
// write of the record must not look like a replayed token.
func (r grantRecords) RotateFamily(ctx context.Context, next Family) error {
	for {
		g := next.grant()
		_, err := r.table.Put(ctx, &g, next.stored.seen)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		stored, err := r.Family(ctx, next.Digest)
		if err != nil {
			return err
		}
		if stored.Generation+1 != next.Generation {
			return ErrClaimed
		}
		next.stored = stored.stored
	}
}

// familiesAtOnce is the batch size of [grantRecords.FamiliesOf].
const familiesAtOnce = 1000

// FamiliesOf implements [SignIns].
func (r grantRecords) FamiliesOf(ctx context.Context, username string, each func([]Family) error) error {
	var some []Family
	err := r.table.List(ctx, store.Query{Owner: username}, func(g grant, seen store.Seen) error {
		if g.generation == 0 {
			return nil
		}
		if some = append(some, g.family(seen)); len(some) < familiesAtOnce {
			return nil
		}
		defer func() { some = nil }()
		return each(some)
	})
	if err == nil && len(some) > 0 {
		err = each(slices.Clip(some))
	}
	return err
}
