package bans

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// Table has the bans that are in force or not forgotten yet. A record key is the client ID, a space
// and the username.
var Table = store.Table{Name: "bans"}

// CheckRecord returns an error if a record of [Table] cannot be read.
var CheckRecord = store.Readable(decode)

// Repository stores bans in a table. It implements [Store].
type Repository struct{ bans store.Collection[Ban] }

// NewRepository returns the bans in a store.
func NewRepository(b store.Backend) *Repository {
	return &Repository{store.Collection[Ban]{Backend: b, Table: Table, Encode: encode, Decode: decode}}
}

// maxLevel bounds levels that are read from the store.
const maxLevel = math.MaxInt32

// record is the value of a ban.
type record struct {
	Level  int       `json:"level"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Forget time.Time `json:"forget"`
	Lifted time.Time `json:"lifted,omitzero"`
}

func encode(b *Ban) (store.Record, error) {
	value, err := json.Marshal(record{b.Level, b.Since.UTC(), b.Until.UTC(), b.Forget.UTC(), b.Lifted.UTC()})
	return store.Record{Key: name(b.Key), Value: value, Expires: b.Expires(), Version: b.Version}, err
}

func decode(r *store.Record) (Ban, error) {
	var v record
	clientID, username, _ := strings.Cut(r.Key, " ")
	err := store.Unmarshal(r, &v)
	return Ban{
		Key: ratelimit.Key{ClientID: clientID, Username: username}, Version: r.Version,
		Level: min(max(v.Level, 0), maxLevel), Since: v.Since, Until: v.Until, Forget: v.Forget, Lifted: v.Lifted,
	}, err
}

// Ban implements [Store]. An unreadable ban has no effect, so Ban returns ErrNotFound for it.
func (r *Repository) Ban(ctx context.Context, k ratelimit.Key) (Ban, error) {
	b, _, err := r.bans.Get(ctx, name(k))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnreadable) {
		err = ErrNotFound
	}
	return b, err
}

// PutBan implements [Store]. An unreadable ban of a greater version has to be deleted first.
func (r *Repository) PutBan(ctx context.Context, b Ban) error { return r.bans.PutAll(ctx, []Ban{b}) }

// Bans implements [Store]. It omits unreadable bans.
func (r *Repository) Bans(ctx context.Context, since time.Time) ([]Ban, error) {
	return r.list(ctx, store.Query{ChangedSince: since})
}

// Of returns the bans of a client, ordered by username.
func (r *Repository) Of(ctx context.Context, clientID string) ([]Ban, error) {
	return r.list(ctx, store.Query{Prefix: name(ratelimit.Key{ClientID: clientID})})
}

func (r *Repository) list(ctx context.Context, q store.Query) (all []Ban, err error) {
	err = r.bans.List(ctx, q, func(b Ban, _ store.Seen) error {
		all = append(all, b)
		return nil
	})
	return all, err
}

// Now implements [Store].
func (r *Repository) Now(ctx context.Context) (time.Time, error) { return r.bans.Backend.Now(ctx) }
