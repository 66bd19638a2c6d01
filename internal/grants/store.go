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
	// ErrUnreadableUser: what is stored under the name is no user of this release. It was edited by hand,
	// or a newer release wrote it.
	ErrUnreadableUser = errors.New("grants: the stored user cannot be read")
)

// [Repository] and [UserRepository] implement the interfaces below. Writes are durable when they return nil. What has expired
// may be returned until it is removed: the caller has the clock.

// Codes keeps authorization codes.
type Codes interface {
	// CreateCode adds a code. ErrExists if the digest is taken.
	CreateCode(ctx context.Context, c Code) error
	// Code reads, and claims nothing. It returns claimed codes too, so that a replay is recognised.
	// ErrNotFound.
	Code(ctx context.Context, d secret.Digest) (Code, error)
	// RedeemCode claims a code that Code has returned and, if first is not nil, stores the family that
	// begins with it, which has the same digest. Of any number of concurrent calls exactly one returns nil;
	// the others get ErrClaimed. The claim lasts for at least as long as the code. ErrNotFound.
	//
	// With ErrClaimed and ErrNotFound nothing was stored. After any other error the outcome may be
	// unknown: then either both took place or neither did.
	RedeemCode(ctx context.Context, c Code, first *Family) error
}

// Families keeps the sign-ins that can be refreshed.
type Families interface {
	// CreateFamily adds a family that begins with nothing. ErrExists if the digest is taken.
	CreateFamily(ctx context.Context, f Family) error
	// Family reads. ErrNotFound.
	Family(ctx context.Context, d secret.Digest) (Family, error)
	// RotateFamily replaces the family of that digest, which Family has returned, if its generation is one
	// less than that of next. Of any number of concurrent calls for one generation exactly one returns nil;
	// the others get ErrClaimed. Other errors are as those of RedeemCode. ErrNotFound.
	RotateFamily(ctx context.Context, next Family) error
}

// Agreements keeps what users allow clients, one agreement at most for a user and a client.
type Agreements interface {
	// Agreement reads. ErrNotFound.
	Agreement(ctx context.Context, username, clientID string) (Agreement, error)
	// AgreementsOf returns those of a user, ordered by client.
	AgreementsOf(ctx context.Context, username string) ([]Agreement, error)
	// PutAgreement replaces the agreement that was read, or adds a new one. ErrExists: there is another one
	// by now, or none.
	PutAgreement(ctx context.Context, a Agreement) error
	// DeleteAgreement removes the agreement of that user, client and ID; one that is not there is no error.
	DeleteAgreement(ctx context.Context, a *Agreement) error
}

// Revocations keeps what was revoked before it expired, token families and single access tokens, by
// name, and the names of what was done once. A revocation is consulted at every use, so nothing that races
// with it can escape it.
type Revocations interface {
	// Revoke records the name until it can no longer matter. Recording it twice keeps the later of
	// both times.
	Revoke(ctx context.Context, name string, until time.Time) error
	// RecordOnce records a name that is not recorded yet until then; it is for what all instances
	// together may do once. ErrExists if it is recorded: of any number of concurrent calls at most one
	// returns nil.
	RecordOnce(ctx context.Context, name string, until time.Time) error
	// Revoked reports whether any of the names is recorded.
	Revoked(ctx context.Context, names ...string) (bool, error)
}

// UserReader looks up the people who can sign in.
type UserReader interface {
	// User returns the user of exactly that name. ErrNotFound, ErrUnreadableUser.
	User(ctx context.Context, name string) (User, error)
}

// Users keeps the people who can sign in.
type Users interface {
	UserReader
	// ChangeUser changes a user as it is stored now, together with the event of the change. If edit leaves it
	// as it is, nothing is stored. ErrNotFound, ErrUnreadableUser.
	ChangeUser(ctx context.Context, name string, edit UserEdit) error
}

// UserEdit changes a user and returns the event of that. It is called again if another writer was faster. It
// MUST NOT change users.
type UserEdit func(u *User) (clientcfg.Event, error)

// UserRegistry adds, lists, changes and removes the people who can sign in, each change together with its event.
// A user that cannot be read exists: the name is taken, and it can be deleted. [UserRepository] is one.
type UserRegistry interface {
	Users
	// CreateUser adds a user. ErrExists.
	CreateUser(ctx context.Context, u User, e clientcfg.Event) error
	// UsersAfter returns at most limit of the users whose names are greater, ordered by name, also those that
	// cannot be read.
	UsersAfter(ctx context.Context, name string, limit int) ([]StoredUser, error)
	// DeleteUser removes a user unless judge returns an error. judge gets nil for one that cannot be read; it is
	// nil for a deletion without an event. ErrNotFound.
	DeleteUser(ctx context.Context, name string, judge UserEdit) error
}

// KnownAddresses keeps what sign-ins teach about users.
type KnownAddresses interface {
	// Known returns what is known of users of that name, also former ones; the zero Known if nothing is that can
	// be read.
	Known(ctx context.Context, username string) (Known, error)
	// ChangeKnown changes what is known of a user. edit is called again if another writer was faster.
	ChangeKnown(ctx context.Context, u *User, edit func(k *Known)) error
}

// SignIns lists what a user is signed in with, for operators. What has expired may be in a list until it
// is removed.
type SignIns interface {
	// SessionsOf returns the sessions of a user, the newest first.
	SessionsOf(ctx context.Context, username string) ([]Session, error)
	// FamiliesOf calls each with the families of a user, some at a time, in any order and without their
	// digests, until that fails. each may use the store, and change what it holds. A family that cannot be
	// read, and so cannot be refreshed, is left out. It may cost a look at all families that are stored.
	FamiliesOf(ctx context.Context, username string, each func([]Family) error) error
}

// Sessions keeps the browsers that are signed in.
type Sessions interface {
	// CreateSession adds a session and removes the oldest others of the user, so that no more than most
	// are left; most is at least 1. While several calls for one user are under way there may be one more
	// for each; they may end each other's sessions. ErrExists if the key is taken; then nothing is
	// removed.
	CreateSession(ctx context.Context, s Session, most int) error
	// Session looks a session up. ErrNotFound.
	Session(ctx context.Context, key string) (Session, error)
	// DeleteSession signs out; a session that is not there is no error.
	DeleteSession(ctx context.Context, key string) error
}
