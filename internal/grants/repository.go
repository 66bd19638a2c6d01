package grants

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/store/document"
)

// grantTable has authorization codes and families. A code and its family have the same digest and
// share one record, so claiming the code and storing the family is one write. In a bbolt file the
// table has no index by owner, because an index would make redeeming a code 60 % more expensive.
var grantTable = store.Table{Name: "grants"}

// Authorization is what the user agreed to. A code and its family share the same Authorization.
type Authorization struct {
	ClientID string
	Username string
	Scopes   []string
	// Family identifies all tokens that descend from one authorization, for revoking them together
	// (RFC 9700 4.14.2).
	Family string
	// AuthTime is when the user signed in.
	AuthTime time.Time
	// UserStamp is the user's stamp at sign-in.
	UserStamp secret.Stamp
}

// Grant is an authorization code, or a family: a sign-in that can be refreshed. A code becomes a
// family in the same record, and a family stays one record, however often it is refreshed.
type Grant struct {
	Authorization
	Digest     secret.Digest // of the code, which is also the secret in the refresh tokens of its family
	Generation uint32        // of the family's newest refresh token; the first token has 1; 0 means no family
	// IssuedAt and ExpiresAt are the times of the newest refresh token, or of the code if there is no
	// family. [Options].CodeLifetime may end a code earlier.
	IssuedAt  time.Time
	ExpiresAt time.Time
	// ClientStamp is the client's stamp at IssuedAt.
	ClientStamp secret.Stamp
	Claimed     bool   // the grant began with a code, and the code was claimed
	RedirectURI string // this and Challenge: of an unclaimed code
	Challenge   string // S256; empty if the client is exempt from PKCE

	seen store.Seen // the state of the record when it was read; zero for a new grant
	kept time.Time  // how long the record was stored, for detecting replays of the code
}

// Redeemed returns the grant of a code that is being claimed.
func (g *Grant) Redeemed() Grant {
	next := *g
	next.Claimed, next.RedirectURI, next.Challenge = true, "", ""
	return next
}

// RevocationNames returns the names under which the grant may have been revoked.
func (g *Grant) RevocationNames() []string { return familyNames(g.Family) }

// Revocation returns the name to record for revoking a family, and until when the record matters.
// Its refresh token may be exchanged at this moment, and the resulting access token lives for a
// while.
func (g *Grant) Revocation(now time.Time) (name string, until time.Time) {
	last := later(now.Add(g.ExpiresAt.Sub(g.IssuedAt)), g.ExpiresAt)
	return familyName(g.Family), last.Add(longestAccess + skew)
}

// ErrClaimed means that another request has claimed the code or refresh token first.
var ErrClaimed = errors.New("grants: already claimed")

// The longest configurable lifetimes, of an access token and of a refreshable sign-in.
const (
	longestAccess  = 30 * 24 * time.Hour
	longestRefresh = 10 * 365 * 24 * time.Hour
)

// CreateGrant stores a new code, or a family that began without a code. It returns
// [store.ErrConflict] if the digest is taken.
func (r *Repository) CreateGrant(ctx context.Context, g Grant) error {
	_, err := r.grants.Put(ctx, &g, store.Seen{})
	return err
}

// Grant reads a code or a family without claiming anything. It returns claimed codes too. Errors:
// [store.ErrNotFound].
func (r *Repository) Grant(ctx context.Context, d secret.Digest) (Grant, error) {
	g, seen, err := r.grants.Get(ctx, d.Key())
	g.Digest, g.seen = d, seen
	return g, err
}

// Claim replaces a grant that Grant has returned with its successor: the [Grant.Redeemed] code, with
// or without a first refresh token, or the family with its next generation. Exactly one of any number
// of concurrent calls for one state returns nil. The others return ErrClaimed. The claim of a code
// lasts at least as long as the code. It returns [store.ErrNotFound] if there is no such grant.
//
// With ErrClaimed and [store.ErrNotFound], nothing was stored. After any other error the outcome
// may be unknown.
func (r *Repository) Claim(ctx context.Context, next Grant) error {
	for {
		_, err := r.grants.Put(ctx, &next, next.seen)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		stored, err := r.Grant(ctx, next.Digest)
		if err != nil {
			return err
		}
		if stored.claimedBefore(&next) {
			return ErrClaimed
		}
		next.seen = stored.seen // another write of the record must not look like a replay
	}
}

// claimedBefore reports whether the stored grant is no longer the one that next succeeds.
func (g *Grant) claimedBefore(next *Grant) bool {
	if next.Generation > 1 {
		return g.Generation+1 != next.Generation
	}
	return g.Claimed
}

// familiesAtOnce is the batch size of [Repository.FamiliesOf].
const familiesAtOnce = 1000

// FamiliesOf calls each with the families of a user, in batches, in any order and without their
// digests, until each returns an error. each may use the store and may keep and change the slice.
// Unreadable families are left out, because they cannot be refreshed. A store on a file reads all
// stored families.
func (r *Repository) FamiliesOf(ctx context.Context, username string, each func([]Grant) error) error {
	var some []Grant
	err := r.grants.List(ctx, store.Query{Owner: username}, func(g Grant, _ store.Seen) error {
		if g.Generation == 0 {
			return nil
		}
		if some = append(some, g); len(some) < familiesAtOnce {
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

// encodeGrant writes the JSON by hand, because one grant is written at every refresh.
func encodeGrant(g *Grant) (store.Record, error) {
	kept := later(g.kept, g.ExpiresAt)
	w := document.New(384)
	w.String("client", g.ClientID)
	w.String("family", g.Family)
	w.Strings("scopes", g.Scopes)
	w.Int("authTime", g.AuthTime.UnixMilli())
	w.Int("issued", g.IssuedAt.UnixMilli())
	clientcfg.WriteStamp(w, "clientStamp", g.ClientStamp)
	clientcfg.WriteStamp(w, "userStamp", g.UserStamp)
	w.String("redirectUri", g.RedirectURI)
	w.String("challenge", g.Challenge)
	w.Bool("claimed", g.Claimed)
	if g.Generation > 0 {
		w.Int("generation", int64(g.Generation))
		if until := g.ExpiresAt.UnixMilli(); until != kept.UnixMilli() {
			w.Int("until", until)
		}
	}
	return store.Record{Key: g.Digest.Key(), Value: w.End(), Owner: g.Username, Expires: kept}, nil
}

// decodeGrant is the inverse of encodeGrant, without the digest.
func decodeGrant(record *store.Record) (g Grant, err error) {
	g.Username, g.kept, g.ExpiresAt = record.Owner, record.Expires, record.Expires
	g.AuthTime, g.IssuedAt = time.UnixMilli(0).UTC(), time.UnixMilli(0).UTC()
	inRange := true
	r := document.Read(record.Value)
	at := func() time.Time {
		n := r.Int()
		inRange = inRange && n >= firstMilli && n <= lastMilli
		return time.UnixMilli(n).UTC()
	}
	for r.Next() {
		switch string(r.Name()) {
		case "client":
			g.ClientID = r.String()
		case "family":
			g.Family = r.String()
		case "scopes":
			g.Scopes = r.Strings()
		case "authTime":
			g.AuthTime = at()
		case "issued":
			g.IssuedAt = at()
		case "clientStamp":
			g.ClientStamp = clientcfg.ReadStamp(r)
		case "userStamp":
			g.UserStamp = clientcfg.ReadStamp(r)
		case "redirectUri":
			g.RedirectURI = r.String()
		case "challenge":
			g.Challenge = r.String()
		case "claimed":
			g.Claimed = r.Bool()
		case "generation":
			n := r.Int()
			inRange = inRange && n > 0 && n <= math.MaxUint32
			g.Generation = uint32(n) //nolint:gosec // compared before
		case "until":
			g.ExpiresAt = at()
		default:
			r.Unknown()
		}
	}
	if err = r.Err(); err == nil && (!inRange || g.ClientID == "") {
		err = errors.New("a number is out of range, or the client is missing")
	}
	return g, err
}

// The range of times that JSON can represent: years 0 to 9999, in milliseconds.
const (
	firstMilli = -62167219200000
	lastMilli  = 253402300799999
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Tables holds a check for each table. It returns why a record of the table cannot be read, or nil.
var Tables = map[store.Table]func(*store.Record) error{
	grantTable: store.Readable(decodeGrant), agreementTable: store.Readable(decodeAgreement),
}

// Repository stores codes, families, agreements, and what accounts does. It is safe for concurrent
// use.
type Repository struct {
	*accounts.Repository
	grants     store.Collection[Grant]
	agreements store.Collection[Agreement]
}

// NewRepository returns the Repository in the store b.
func NewRepository(b store.Backend) *Repository {
	return &Repository{
		accounts.NewRepository(b),
		store.Collection[Grant]{Backend: b, Table: grantTable, Encode: encodeGrant, Decode: decodeGrant},
		store.Collection[Agreement]{Backend: b, Table: agreementTable, Encode: encodeAgreement, Decode: decodeAgreement},
	}
}

// deletedAtOnce is how many records [Repository.EndSignIns] deletes in one commit.
const deletedAtOnce = 1000

// EndSignIns deletes all codes, families, sessions, consents and known addresses. It is for a
// restored backup, because some of them may have ended since the backup was made. Revocations stay.
func (r *Repository) EndSignIns(ctx context.Context) error {
	b := r.grants.Backend
	for _, table := range append([]store.Table{grantTable, agreementTable}, accounts.SignInTables...) {
		var keys []string
		err := b.List(ctx, table, store.Query{}, func(rec store.Record) error {
			if keys = append(keys, rec.Key); len(keys) < deletedAtOnce {
				return nil
			}
			defer func() { keys = keys[:0] }()
			return b.DeleteAll(ctx, table, keys...)
		})
		if err == nil && len(keys) > 0 {
			err = b.DeleteAll(ctx, table, keys...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
