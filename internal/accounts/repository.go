package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Tables of a [Repository].
var (
	sessionTable    = store.Table{Name: "sessions", ByOwner: true}
	revocationTable = store.Table{Name: "revocations"}
)

// SignInTables are the tables with sign-ins, which end when a backup is restored.
var SignInTables = []store.Table{sessionTable, knownTable}

// Tables holds a check for each table. It returns why a record of the table cannot be read, or nil.
var Tables = map[store.Table]func(*store.Record) error{
	sessionTable: store.Readable(decodeSession), revocationTable: store.Readable(decodeRevocation),
	UsersTable: checkUser, knownTable: store.Readable(decodeKnown),
}

// ClockSkew is how far the clocks of two instances may differ. A revocation outlasts its tokens by
// it, so no token becomes valid again shortly before it expires.
const ClockSkew = time.Minute

// Repository stores sessions, revocations and what was learned from sign-ins. A write is durable when
// it returns nil. Reads may return expired records until they are removed. It is safe for concurrent
// use.
type Repository struct {
	sessions    store.Collection[Session]
	revocations store.Collection[revocation]
	known       store.Collection[Known]
}

// NewRepository returns the Repository in the store b.
func NewRepository(b store.Backend) *Repository {
	return &Repository{
		store.Collection[Session]{Backend: b, Table: sessionTable, Encode: encodeSession, Decode: decodeSession},
		store.Collection[revocation]{Backend: b, Table: revocationTable, Encode: encodeRevocation, Decode: decodeRevocation},
		store.Collection[Known]{Backend: b, Table: knownTable, Encode: encodeKnown, Decode: decodeKnown},
	}
}

// Session is a person signed in with a browser.
type Session struct {
	Key       string // store key of the digest of the cookie's value
	Username  string
	CreatedAt time.Time
	ExpiresAt time.Time
	UserStamp secret.Stamp // stamp of the user when the password was checked
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
	created := time.UnixMilli(v.Created).UTC()
	if err == nil && (v.Created <= 0 || created.Year() > 9999) {
		err = fmt.Errorf("created at %d", v.Created)
	}
	return Session{Key: r.Key, Username: r.Owner, CreatedAt: created, ExpiresAt: r.Expires, UserStamp: v.UserStamp}, err
}

// CreateSession adds a session and removes the user's oldest other sessions until at most most are
// left. most is at least 1. Concurrent calls for one user may leave one extra session each, and may
// end each other's sessions. If the key is taken, it returns [store.ErrConflict] and removes nothing.
func (r *Repository) CreateSession(ctx context.Context, s Session, most int) error {
	if _, err := r.sessions.Put(ctx, &s, store.Seen{}); err != nil {
		return err
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

// Session looks up a session, which may have expired. Errors: [store.ErrNotFound].
func (r *Repository) Session(ctx context.Context, key string) (Session, error) {
	s, _, err := r.sessions.Get(ctx, key)
	return s, err
}

// DeleteSession removes a session. It returns nil if there is no such session.
func (r *Repository) DeleteSession(ctx context.Context, key string) error {
	return r.sessions.Backend.Delete(ctx, sessionTable, nil, key)
}

// SessionsOf returns the sessions of a user, newest first. The list may contain expired ones.
func (r *Repository) SessionsOf(ctx context.Context, username string) (list []Session, err error) {
	err = r.sessions.List(ctx, store.Query{Owner: username}, func(s Session, _ store.Seen) error {
		list = append(list, s)
		return nil
	})
	slices.SortFunc(list, func(a, b Session) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.Key, a.Key)) })
	return list, err
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
	err := store.Unmarshal(r, &v)
	return v, err
}

// Revoke records the name of a token family, an agreement or an access token until the time when the
// revocation no longer matters. If it is recorded twice, the later time is kept. Every use of a token
// checks its revocation, so no concurrent request can escape it.
func (r *Repository) Revoke(ctx context.Context, name string, until time.Time) error {
	return r.revocations.PutAll(ctx, []revocation{{name, until}})
}

// RecordOnce records a name until the given time, for actions that all instances together may do only
// once. Of any number of concurrent calls, at most one returns nil. It returns [store.ErrConflict] if
// the name is already recorded.
func (r *Repository) RecordOnce(ctx context.Context, name string, until time.Time) error {
	_, err := r.revocations.Put(ctx, &revocation{name, until}, store.Seen{})
	return err
}

// RevokedOf returns those of the names that are recorded.
func (r *Repository) RevokedOf(ctx context.Context, names []string) (revoked []string, err error) {
	byKey := make(map[string]string, len(names))
	for _, name := range names {
		byKey[revocationKey(name)] = name
	}
	err = r.revocations.Backend.Get(ctx, revocationTable, func(rec store.Record) error {
		revoked = append(revoked, byKey[rec.Key])
		return nil
	}, slices.Collect(maps.Keys(byKey))...)
	return revoked, err
}

// Revoked reports whether any of the names is recorded. An unreadable record counts too.
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
