package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Errors that the stores return, possibly wrapped.
var (
	ErrNotFound = errors.New("grants: not found")
	ErrExists   = errors.New("grants: exists already")
	ErrClaimed  = errors.New("grants: claimed already")
	// ErrUnreadableUser means that the record under this name is not a user of this release. It was
	// edited by hand, or a newer release wrote it.
	ErrUnreadableUser = errors.New("grants: the stored user cannot be read")
)

// [Repository] and [UserRepository] implement the interfaces below. A write is durable when it
// returns nil. Reads may return expired records until they are removed. The caller checks expiry
// with its own clock.

// Codes keeps authorization codes.
type Codes interface {
	// CreateCode adds a code. It returns ErrExists if the digest is taken.
	CreateCode(ctx context.Context, c Code) error
	// Code reads a code without claiming it. It returns claimed codes too, for detecting replays.
	// Errors: ErrNotFound.
	Code(ctx context.Context, d secret.Digest) (Code, error)
	// RedeemCode claims a code that Code has returned. If first is not nil, it also stores first,
	// the new family, which has the same digest. Exactly one of any number of concurrent calls
	// returns nil. The others return ErrClaimed. The claim lasts at least as long as the code.
	// Errors: ErrClaimed, ErrNotFound.
	//
	// With ErrClaimed and ErrNotFound, nothing was stored. After any other error the outcome may be
	// unknown: either both writes took place or neither did.
	RedeemCode(ctx context.Context, c Code, first *Family) error
}

// Families stores refreshable sign-ins.
type Families interface {
	// CreateFamily adds a family that began without a code. It returns ErrExists if the digest is
	// taken.
	CreateFamily(ctx context.Context, f Family) error
	// Family reads a family. Errors: ErrNotFound.
	Family(ctx context.Context, d secret.Digest) (Family, error)
	// RotateFamily replaces the family with the digest of next, which Family has returned, if the
	// stored generation is one less than the generation of next. Exactly one of any number of
	// concurrent calls for one generation returns nil. The others return ErrClaimed. It returns
	// ErrNotFound if there is no such family. After other errors the outcome may be unknown, as
	// with RedeemCode.
	RotateFamily(ctx context.Context, next Family) error
}

// Agreements stores what users allow clients, at most one agreement for each user and client.
type Agreements interface {
	// Agreement reads an agreement. Errors: ErrNotFound.
	Agreement(ctx context.Context, username, clientID string) (Agreement, error)
	// AgreementsOf returns the agreements of a user, ordered by client.
	AgreementsOf(ctx context.Context, username string) ([]Agreement, error)
	// PutAgreement adds a new agreement, or replaces the one that was read. It returns ErrExists if
	// the stored agreement was replaced or removed since.
	PutAgreement(ctx context.Context, a Agreement) error
	// DeleteAgreement removes the agreement with that user, client and ID. It returns nil if there
	// is no such agreement.
	DeleteAgreement(ctx context.Context, a *Agreement) error
}

// Revocations stores, by name, token families and access tokens that were revoked before they
// expired, and actions that may happen only once. Every use of a token checks its revocation, so no
// concurrent request can escape it.
type Revocations interface {
	// Revoke records the name until the time when it no longer matters. If it is recorded twice,
	// the later time is kept.
	Revoke(ctx context.Context, name string, until time.Time) error
	// RecordOnce records a name until the given time, for actions that all instances together may
	// do only once. It returns ErrExists if the name is already recorded. At most one of any number
	// of concurrent calls returns nil.
	RecordOnce(ctx context.Context, name string, until time.Time) error
	// Revoked reports whether any of the names is recorded.
	Revoked(ctx context.Context, names ...string) (bool, error)
}

// UserReader looks up users.
type UserReader interface {
	// User returns the user with exactly that name. Errors: ErrNotFound, ErrUnreadableUser.
	User(ctx context.Context, name string) (User, error)
}

// Users reads and changes users.
type Users interface {
	UserReader
	// ChangeUser applies edit to the stored user and appends the event in the same write. If edit
	// changes nothing, nothing is stored. Errors: ErrNotFound, ErrUnreadableUser.
	ChangeUser(ctx context.Context, name string, edit UserEdit) error
}

// UserEdit changes a user and returns the event for the change. It is called again if another
// writer was faster. It MUST NOT modify the repository of users.
type UserEdit func(u *User) (clientcfg.Event, error)

// UserStore adds, lists, changes and removes users. Each change is stored together with its
// event. An unreadable user exists: the name is taken, and the user can be deleted.
// [UserRepository] implements it.
type UserStore interface {
	Users
	// CreateUser adds a user. Errors: ErrExists.
	CreateUser(ctx context.Context, u User, e clientcfg.Event) error
	// UsersAfter returns at most limit users with names greater than name, ordered by name. The
	// list includes unreadable users.
	UsersAfter(ctx context.Context, name string, limit int) ([]StoredUser, error)
	// DeleteUser removes a user unless judge returns an error. judge gets nil for an unreadable
	// user. If judge itself is nil, the deletion has no event. Errors: ErrNotFound.
	DeleteUser(ctx context.Context, name string, judge UserEdit) error
}

// KnownAddresses stores what the server has learned about users from their sign-ins.
type KnownAddresses interface {
	// Known returns the record for that username, which may belong to a former user with the same
	// name. It returns the zero Known if there is no readable record.
	Known(ctx context.Context, username string) (Known, error)
	// ChangeKnown changes the record of a user. edit is called again if another writer was faster.
	ChangeKnown(ctx context.Context, u *User, edit func(k *Known)) error
}

// SignIns lists a user's sign-ins for operators. Lists may contain expired entries until they are
// removed.
type SignIns interface {
	// SessionsOf returns the sessions of a user, newest first.
	SessionsOf(ctx context.Context, username string) ([]Session, error)
	// FamiliesOf calls each with the families of a user, in batches, in any order and without their
	// digests, until each returns an error. each may use the store and may keep and change the
	// slice. Unreadable families are left out, because they cannot be refreshed. FamiliesOf may
	// have to scan all stored families.
	FamiliesOf(ctx context.Context, username string, each func([]Family) error) error
}

// Sessions stores browser sessions.
type Sessions interface {
	// CreateSession adds a session and removes the user's oldest other sessions until at most most
	// are left. most is at least 1. Concurrent calls for one user may leave one extra session each,
	// and may end each other's sessions. If the key is taken, it returns ErrExists and removes
	// nothing.
	CreateSession(ctx context.Context, s Session, most int) error
	// Session looks up a session. Errors: ErrNotFound.
	Session(ctx context.Context, key string) (Session, error)
	// DeleteSession removes a session. It returns nil if there is no such session.
	DeleteSession(ctx context.Context, key string) error
}
