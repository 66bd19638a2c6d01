package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/store/document"
)

// Errors of [Users].
var (
	ErrExists = errors.New("accounts: user already exists")
	// ErrUnreadableUser means that the record under this name is not a user of this release. It was
	// edited by hand, or a newer release wrote it.
	ErrUnreadableUser = errors.New("accounts: stored user is unreadable")
)

// User is a person who can sign in.
type User struct {
	Name         string
	PasswordHash string // argon2id in PHC string format
	CreatedAt    time.Time
	Stamp        secret.Stamp
	Operator     clientcfg.Access
}

// StoredUser is the user that a store has under a name, readable or not.
type StoredUser struct {
	User
	// Err says why the record cannot be read. User then has only its Name. Err wraps
	// ErrUnreadableUser.
	Err error
}

// UserEdit changes a user and returns the event for the change. It is called again if another
// writer was faster. It MUST NOT modify [Users].
type UserEdit func(u *User) (clientcfg.Event, error)

// UsersTable holds users by username. Only [store.Backend.Append] writes it.
var UsersTable = store.Table{Name: "users"}

// Users stores users. Each change is stored together with its event. An unreadable user exists: the
// name is taken, and the user can be deleted. Users is safe for concurrent use.
type Users struct {
	follower *store.Follower
	users    store.Collection[User] // for callers
	newest   store.Collection[User] // for the follower
}

// NewUsers returns the users in store b. It appends changes through f.
func NewUsers(f *store.Follower, b store.Backend) *Users {
	on := func(b store.Backend) store.Collection[User] {
		return store.Collection[User]{Backend: b, Table: UsersTable, Encode: encodeUser, Decode: decodeUser}
	}
	return &Users{f, on(b), on(f.Backend())}
}

func encodeUser(u *User) (store.Record, error) {
	w := document.New(300)
	w.String("passwordHash", u.PasswordHash)
	w.Time("createdAt", u.CreatedAt)
	clientcfg.WriteStamp(w, "stamp", u.Stamp)
	w.String("operator", string(u.Operator))
	return store.Record{Key: u.Name, Value: w.End()}, nil
}

// decodeUser is the inverse of encodeUser.
func decodeUser(record *store.Record) (User, error) {
	u, r := User{Name: record.Key}, document.Read(record.Value)
	for r.Next() {
		switch string(r.Name()) {
		case "passwordHash":
			u.PasswordHash = r.String()
		case "createdAt":
			u.CreatedAt = r.Time()
		case "stamp":
			u.Stamp = clientcfg.ReadStamp(r)
		case "operator":
			u.Operator = clientcfg.Access(r.String())
		default:
			r.Unknown()
		}
	}
	return u, r.Err()
}

// checkUser returns why a record cannot be read or its password hash cannot be used, or nil.
var checkUser = store.Readable(func(r *store.Record) (User, error) {
	u, err := decodeUser(r)
	if err == nil {
		err = secret.CheckForeign(u.PasswordHash)
	}
	return u, err
})

func unreadableUser(err error) error {
	return fmt.Errorf("%w: %s", ErrUnreadableUser, strings.TrimPrefix(err.Error(), store.ErrUnreadable.Error()+": "))
}

func userOf(ctx context.Context, c *store.Collection[User], name string) (User, error) {
	u, _, err := c.Get(ctx, name)
	if errors.Is(err, store.ErrUnreadable) {
		err = unreadableUser(err)
	}
	return u, err
}

// User returns the user with exactly that name. Errors: [store.ErrNotFound], ErrUnreadableUser.
func (r *Users) User(ctx context.Context, name string) (User, error) {
	return userOf(ctx, &r.users, name)
}

// UsersAfter returns at most limit users with names greater than after, ordered by name. The list
// includes unreadable users.
func (r *Users) UsersAfter(ctx context.Context, after string, limit int) (list []StoredUser, err error) {
	all := r.users
	all.Skipped = func(_, name string, err error) {
		list = append(list, StoredUser{User{Name: name}, unreadableUser(err)})
	}
	err = all.List(ctx, store.Query{After: after, Limit: limit}, func(u User, _ store.Seen) error {
		list = append(list, StoredUser{User: u})
		return nil
	})
	return list, err
}

// CreateUser adds a user. Errors: ErrExists.
func (r *Users) CreateUser(ctx context.Context, u User, e clientcfg.Event) error {
	return r.change(ctx, u.Name, func(_ User, err error) (*User, clientcfg.Event, error) {
		switch {
		case err == nil, errors.Is(err, ErrUnreadableUser):
			err = fmt.Errorf("%w: user %s", ErrExists, u.Name)
		case errors.Is(err, store.ErrNotFound):
			err = nil
		}
		return &u, e, err
	})
}

// errUnchanged ends a change that leaves the user as is.
var errUnchanged = errors.New("accounts: user unchanged")

// ChangeUser applies edit to the stored user and appends the event in the same write. If edit changes
// nothing, nothing is stored. Errors: [store.ErrNotFound], ErrUnreadableUser.
func (r *Users) ChangeUser(ctx context.Context, name string, edit UserEdit) error {
	err := r.change(ctx, name, func(u User, err error) (*User, clientcfg.Event, error) {
		before, e := u, clientcfg.Event{}
		if err == nil {
			e, err = edit(&u)
		}
		if err == nil && u == before {
			err = errUnchanged
		}
		return &u, e, err
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// DeleteUser removes a user unless approve returns an error. approve gets nil for an unreadable user. If
// approve itself is nil, the deletion has no event. Errors: [store.ErrNotFound].
func (r *Users) DeleteUser(ctx context.Context, name string, approve UserEdit) error {
	return r.change(ctx, name, func(stored User, err error) (_ *User, e clientcfg.Event, _ error) {
		u := &stored
		if errors.Is(err, ErrUnreadableUser) {
			u, err = nil, nil
		}
		if err == nil && approve != nil {
			e, err = approve(u)
		}
		return nil, e, err
	})
}

// change appends an event and the user that to returns for the stored user. If to returns nil, the
// user is deleted.
func (r *Users) change(ctx context.Context, name string, to func(User, error) (*User, clientcfg.Event, error)) error {
	return clientcfg.AppendEvent(ctx, r.follower, func() (clientcfg.Event, []store.Write, error) {
		after, e, err := to(userOf(ctx, &r.newest, name))
		w := store.Write{Table: UsersTable, Record: store.Record{Key: name}, Delete: after == nil}
		if err == nil && after != nil {
			w, err = r.newest.Write(after)
		}
		return e, []store.Write{w}, err
	})
}

// RestampUsers gives every user a new stamp, which invalidates everything issued before, including
// grants that a restored backup does not contain. It skips unreadable users, because nothing is
// accepted for them anyway.
func (r *Users) RestampUsers(ctx context.Context) error {
	return clientcfg.RewriteAll(ctx, r.follower, &r.newest, func(u *User) { u.Stamp = secret.NewStamp() })
}
