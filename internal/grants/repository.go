package grants

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Tables of a [Repository].
var (
	sessionTable    = store.Table{Name: "sessions", ByOwner: true}
	agreementTable  = store.Table{Name: "agreements", ByOwner: true}
	revocationTable = store.Table{Name: "revocations"}
)

// Tables holds a check for each table. It returns why a record of the table cannot be read, or nil.
var Tables = map[store.Table]func(*store.Record) error{
	grantTable: store.Readable(decodeGrant), sessionTable: store.Readable(decodeSession),
	agreementTable: store.Readable(decodeAgreement), revocationTable: store.Readable(decodeRevocation),
	UsersTable: checkUser, knownTable: store.Readable(decodeKnown),
}

// Repository implements the storage of a [Service], except users and clients. It is safe for
// concurrent use.
type Repository struct {
	grantRecords
	sessions    store.Collection[Session]
	agreements  store.Collection[Agreement]
	revocations store.Collection[revocation]
	known       store.Collection[Known]
}

// NewRepository returns the Repository in the store b.
func NewRepository(b store.Backend) *Repository {
	return &Repository{
		newGrantRecords(b),
		store.Collection[Session]{Backend: b, Table: sessionTable, Encode: encodeSession, Decode: decodeSession},
		store.Collection[Agreement]{Backend: b, Table: agreementTable, Encode: encodeAgreement, Decode: decodeAgreement},
		store.Collection[revocation]{Backend: b, Table: revocationTable, Encode: encodeRevocation, Decode: decodeRevocation},
		store.Collection[Known]{Backend: b, Table: knownTable, Encode: encodeKnown, Decode: decodeKnown},
	}
}

// translated maps an error of the store to the matching error of this package.
func translated(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, store.ErrConflict):
		return ErrExists
	}
	return err
}

type sessionValue struct {
	Created   int64        `json:"created"` // milliseconds since 1970
	UserStamp secret.Stamp `json:"userStamp"`
}

func encodeSession(s *Session) (store.Record, error) {
	value, err := json.Marshal(sessionValue{s.CreatedAt.UnixMilli(), s.UserStamp})
	return store.Record{Key: s.Key, Value: value, Owner: s.Username, Expires: s.ExpiresAt}, err
}

func decodeSession(r *store.Record) (Session, error) {
	var v sessionValue
	err := store.Unmarshal(r, &v)
	if err == nil && (v.Created == 0 || v.Created < firstMilli || v.Created > lastMilli) {
		err = fmt.Errorf("created at %d", v.Created)
	}
	return Session{
		Key: r.Key, Username: r.Owner, CreatedAt: time.UnixMilli(v.Created).UTC(), ExpiresAt: r.Expires, UserStamp: v.UserStamp,
	}, err
}

// CreateSession implements [Sessions].
func (r *Repository) CreateSession(ctx context.Context, s Session, most int) error {
	if _, err := r.sessions.Put(ctx, &s, store.Seen{}); err != nil {
		return translated(err)
	}
	list, err := r.SessionsOf(ctx, s.Username)
	list = slices.DeleteFunc(list, func(other Session) bool { return other.Key == s.Key })
	if err != nil || len(list) < most {
		return err
	}
	var ended []string
	for _, old := range list[most-1:] {
		ended = append(ended, old.Key)
	}
	return r.sessions.Backend.DeleteAll(ctx, sessionTable, ended...)
}

// Session implements [Sessions].
func (r *Repository) Session(ctx context.Context, key string) (Session, error) {
	s, _, err := r.sessions.Get(ctx, key)
	return s, translated(err)
}

// DeleteSession implements [Sessions].
func (r *Repository) DeleteSession(ctx context.Context, key string) error {
	return r.sessions.Backend.Delete(ctx, sessionTable, nil, key)
}

// SessionsOf implements [SignIns].
func (r *Repository) SessionsOf(ctx context.Context, username string) (list []Session, err error) {
	err = r.sessions.List(ctx, store.Query{Owner: username}, func(s Session, _ store.Seen) error {
		list = append(list, s)
		return nil
	})
	slices.SortFunc(list, func(a, b Session) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.Key, a.Key)) })
	return list, err
}

type agreementValue struct {
	ID          string       `json:"id"`
	Scopes      []string     `json:"scopes,omitempty"`
	AgreedAt    time.Time    `json:"agreedAt"`
	UsedAt      time.Time    `json:"usedAt"`
	ClientStamp secret.Stamp `json:"clientStamp"`
	UserStamp   secret.Stamp `json:"userStamp"`
}

// agreementKey is the username, a space and the client ID. Usernames contain no spaces.
func agreementKey(username, clientID string) string { return username + " " + clientID }

func encodeAgreement(a *Agreement) (store.Record, error) {
	value, err := json.Marshal(agreementValue{a.ID, a.Scopes, a.AgreedAt.UTC(), a.UsedAt.UTC(), a.ClientStamp, a.UserStamp})
	return store.Record{Key: agreementKey(a.Username, a.ClientID), Value: value, Owner: a.Username, Expires: a.ExpiresAt}, err
}

func decodeAgreement(r *store.Record) (Agreement, error) {
	var v agreementValue
	err := store.Unmarshal(r, &v)
	if err == nil && v.ID == "" {
		err = errors.New("its id is missing")
	}
	username, clientID, _ := strings.Cut(r.Key, " ")
	return Agreement{
		Username: username, ClientID: clientID, ID: v.ID, Scopes: v.Scopes, AgreedAt: v.AgreedAt, UsedAt: v.UsedAt,
		ExpiresAt: r.Expires, ClientStamp: v.ClientStamp, UserStamp: v.UserStamp, seen: r.Seen(),
	}, err
}

// Agreement implements [Agreements].
func (r *Repository) Agreement(ctx context.Context, username, clientID string) (Agreement, error) {
	a, _, err := r.agreements.Get(ctx, agreementKey(username, clientID))
	return a, translated(err)
}

// AgreementsOf implements [Agreements].
func (r *Repository) AgreementsOf(ctx context.Context, username string) (list []Agreement, err error) {
	err = r.agreements.List(ctx, store.Query{Owner: username}, func(a Agreement, _ store.Seen) error {
		list = append(list, a)
		return nil
	})
	return list, err
}

// PutAgreement implements [Agreements].
func (r *Repository) PutAgreement(ctx context.Context, a Agreement) error {
	_, err := r.agreements.Put(ctx, &a, a.seen)
	return translated(err)
}

// DeleteAgreement implements [Agreements].
func (r *Repository) DeleteAgreement(ctx context.Context, a *Agreement) error {
	key, seen, id := agreementKey(a.Username, a.ClientID), a.seen, a.ID
	for {
		err := r.agreements.Backend.Delete(ctx, agreementTable, &seen, key)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		var stored Agreement
		if stored, seen, err = r.agreements.Get(ctx, key); errors.Is(err, store.ErrNotFound) || err == nil && stored.ID != id {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ForgetAgreements removes all agreements of a user, including unreadable ones.
func (r *Repository) ForgetAgreements(ctx context.Context, username string) error {
	var keys []string
	err := r.agreements.Backend.List(ctx, agreementTable, store.Query{Prefix: agreementKey(username, "")}, func(a store.Record) error {
		keys = append(keys, a.Key)
		return nil
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	return r.agreements.Backend.DeleteAll(ctx, agreementTable, keys...)
}

// revocation is the record of a revoked name, or of a one-time action (see RecordOnce).
type revocation struct {
	Name  string `json:"name"`
	until time.Time
}

// revocationKey returns a digest, because names may have any length.
func revocationKey(name string) string { return secret.DigestOf(name).Key() }

func encodeRevocation(v *revocation) (store.Record, error) {
	value, err := json.Marshal(v)
	return store.Record{Key: revocationKey(v.Name), Value: value, Expires: v.until, Version: v.until.UnixMilli()}, err
}

func decodeRevocation(r *store.Record) (revocation, error) {
	v := revocation{until: r.Expires}
	return v, store.Unmarshal(r, &v)
}

// Revoke implements [Revocations].
func (r *Repository) Revoke(ctx context.Context, name string, until time.Time) error {
	return r.revocations.PutAll(ctx, []revocation{{name, until}})
}

// RecordOnce implements [Revocations].
func (r *Repository) RecordOnce(ctx context.Context, name string, until time.Time) error {
	_, err := r.revocations.Put(ctx, &revocation{name, until}, store.Seen{})
	return translated(err)
}

// Revoked implements [Revocations]. An unreadable record counts as a revocation too.
func (r *Repository) Revoked(ctx context.Context, names ...string) (yes bool, err error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = revocationKey(name)
	}
	err = r.revocations.Backend.Get(ctx, revocationTable, func(store.Record) error {
		yes = true
		return nil
	}, keys...)
	return yes, err
}

// deletedAtOnce is how many records [Repository.EndSignIns] deletes in one commit.
const deletedAtOnce = 1000

// EndSignIns deletes all codes, families, sessions, consents and known addresses. It is for a
// restored backup, because some of them may have ended since the backup was made. Revocations stay.
func (r *Repository) EndSignIns(ctx context.Context) error {
	b := r.sessions.Backend
	for _, table := range []store.Table{grantTable, sessionTable, agreementTable, knownTable} {
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
