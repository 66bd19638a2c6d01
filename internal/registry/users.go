package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/username"
)

// User is a user as operators see it.
type User struct {
	Username  string    `json:"username"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Operator is what the user may do with the admin API; empty: nothing.
	Operator clientcfg.Access `json:"operator,omitempty"`
	// Foreign names the kind of a password hash that was imported, until the next right password.
	Foreign string `json:"imported_hash,omitempty"`
	// Unreadable is why the user cannot be read; then only the name is known.
	Unreadable string `json:"unreadable,omitempty"`
}

func showUser(u *grants.User) User {
	return User{
		Username: u.Name, CreatedAt: u.CreatedAt, Operator: u.Operator, Foreign: secret.Foreign(u.PasswordHash),
	}
}

// userDoc is what an event shows of a user.
type userDoc struct {
	Username string           `json:"username"`
	Operator clientcfg.Access `json:"operator,omitempty"`
}

// NewUser is a user to be created.
type NewUser struct {
	Name     string
	Password string
	Hash     string // instead of the password: as it was stored elsewhere; see [secret.CheckForeign]
	Operator clientcfg.Access
}

// CreateUser stores a user under the canonical form of the name, with the argon2id hash of the password.
// Errors: *[InvalidError], [grants.ErrExists], [ErrNameOfClient]; that a client of the
// name is registered at the same moment is not noticed.
func (r *Registry) CreateUser(ctx context.Context, n NewUser) (User, error) {
	name, err := r.CheckUser(ctx, n)
	if err != nil {
		return User{}, err
	}
	hash := n.Hash
	if hash == "" {
		if hash, err = r.hash(ctx, name, n.Password); err != nil {
			return User{}, err
		}
	}
	u := grants.User{
		Name: name, PasswordHash: hash, CreatedAt: r.o.Now().UTC().Truncate(time.Second), Stamp: secret.NewStamp(), Operator: n.Operator,
	}
	e, err := r.event(change{action: "create", target: clientcfg.UserTarget(name), after: userDoc{name, n.Operator}})
	if err == nil {
		err = r.o.Store.CreateUser(ctx, u, e)
	}
	if err != nil {
		return User{}, fmt.Errorf("create user %q: %w", name, err)
	}
	return showUser(&u), nil
}

// Validate returns the name under which the user would be stored. Errors: *[InvalidError].
func (n *NewUser) Validate() (string, error) {
	name, bad := username.New(n.Name)
	password := grants.ValidatePassword(n.Name, n.Password)
	if n.Hash != "" {
		password = secret.CheckForeign(n.Hash)
	}
	if err := errors.Join(bad, password); err != nil {
		return "", &InvalidError{err}
	}
	return name, nil
}

// CheckUser returns the name under which a new user would be stored, or why it could not be.
func (r *Registry) CheckUser(ctx context.Context, n NewUser) (string, error) {
	name, err := n.Validate()
	if err != nil {
		return "", err
	}
	switch _, err = r.o.Store.User(ctx, name); {
	case err == nil || errors.Is(err, grants.ErrUnreadableUser):
		err = grants.ErrExists
	case errors.Is(err, grants.ErrNotFound):
		switch _, err = r.FindClient(ctx, name); {
		case err == nil || errors.Is(err, clientcfg.ErrUnreadableClient):
			err = ErrNameOfClient
		case errors.Is(err, clientcfg.ErrNotFound):
			err = nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("create user %q: %w", name, err)
	}
	return name, nil
}

func (r *Registry) hash(ctx context.Context, name, password string) (string, error) {
	hash, err := r.o.Passwords.Hash(ctx, password)
	if err != nil {
		return "", fmt.Errorf("hash password of user %q: %w", name, err)
	}
	return hash, nil
}

// Users returns a page of the users, ordered by name: at most limit of those whose names are greater.
func (r *Registry) Users(ctx context.Context, after string, limit int) ([]User, error) {
	stored, err := r.o.Store.UsersAfter(ctx, after, limit)
	list := make([]User, len(stored))
	for i := range stored {
		if list[i] = showUser(&stored[i].User); stored[i].Err != nil {
			list[i] = User{Username: stored[i].Name, Unreadable: stored[i].Err.Error()}
		}
	}
	return list, err
}

// User returns the user of that name, in any way that the user can sign in with. Errors:
// [grants.ErrNotFound], [grants.ErrUnreadableUser].
func (r *Registry) User(ctx context.Context, typed string) (User, error) {
	u, err := r.user(ctx, typed)
	return showUser(&u), err
}

func (r *Registry) user(ctx context.Context, typed string) (grants.User, error) {
	u, err := r.o.Store.User(ctx, username.Stored(typed))
	if err != nil {
		return u, fmt.Errorf("user %q: %w", typed, err)
	}
	return u, nil
}

// SetPassword replaces the password of a user and revokes the user, as [Registry.RevokeUser] does.
// Errors: *[InvalidError], [grants.ErrNotFound].
func (r *Registry) SetPassword(ctx context.Context, typed, password string) (User, error) {
	u, err := r.User(ctx, typed)
	if err != nil {
		return u, err
	}
	if err := grants.ValidatePassword(u.Username, password); err != nil {
		return u, &InvalidError{err}
	}
	hash, err := r.hash(ctx, u.Username, password)
	if err != nil {
		return u, err
	}
	return r.changeUser(ctx, u.Username, "password", func(u *grants.User) error {
		// In one step, so that what came of a sign-in with the old password carries a lower count.
		u.PasswordHash, u.Stamp = hash, u.Stamp.Revoked()
		return nil
	})
}

// RevokeUser makes everything worthless that came of a user's sign-ins until now: sessions, codes,
// refresh tokens and access tokens, at once on every instance. Errors: [grants.ErrNotFound].
func (r *Registry) RevokeUser(ctx context.Context, typed string) (User, error) {
	return r.changeUser(ctx, typed, "revoke", func(u *grants.User) error {
		u.Stamp = u.Stamp.Revoked()
		return nil
	})
}

// SetOperator lets a user use the admin API, or not. If it is so already, nothing is recorded. Errors: *[LockOutError], [grants.ErrNotFound].
func (r *Registry) SetOperator(ctx context.Context, typed string, access clientcfg.Access) (User, error) {
	return r.changeUser(ctx, typed, "operator", func(u *grants.User) (err error) {
		if u.Operator != access && access != clientcfg.WriteAccess {
			err = r.mayEndOperator(u)
		}
		u.Operator = access
		return err
	})
}

// changeUser changes a user and returns it as it is then.
func (r *Registry) changeUser(ctx context.Context, typed, action string, edit func(u *grants.User) error) (shown User, err error) {
	name := username.Stored(typed)
	err = r.o.Store.ChangeUser(ctx, name, func(u *grants.User) (clientcfg.Event, error) {
		shown = showUser(u)
		ch := change{action: action, target: clientcfg.UserTarget(name), before: userDoc{name, u.Operator}}
		err := r.o.IfUser(&shown)
		if err == nil {
			err = edit(u)
		}
		if err != nil {
			return clientcfg.Event{}, err
		}
		shown, ch.after = showUser(u), userDoc{name, u.Operator}
		return r.event(ch)
	})
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", name, err)
	}
	return shown, nil
}

// UnlockUser ends the row of wrong passwords of a user, on every instance with its next attempt, so that
// new addresses are not slowed down. Limits by address stay. Errors: [grants.ErrNotFound].
func (r *Registry) UnlockUser(ctx context.Context, typed string) (User, error) {
	u, err := r.user(ctx, typed)
	if err != nil {
		return User{}, err
	}
	shown := showUser(&u)
	now, err := r.o.Store.Now(ctx)
	if err == nil {
		err = r.o.IfUser(&shown)
	}
	if err == nil {
		doc := userDoc{u.Name, u.Operator}
		err = r.Record(ctx, "unlock", clientcfg.UserTarget(u.Name), doc, doc, func() error {
			return r.grants.ChangeKnown(ctx, &u, func(k *grants.Known) { k.EndRow(now) })
		})
	}
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", u.Name, err)
	}
	return shown, nil
}

// DeleteUser removes a user, also one that cannot be read, and returns the name. Errors: *[LockOutError],
// [grants.ErrNotFound].
func (r *Registry) DeleteUser(ctx context.Context, typed string) (string, error) {
	name := username.Stored(typed)
	judge := func(u *grants.User) (clientcfg.Event, error) {
		ch := change{action: "delete", target: clientcfg.UserTarget(name)}
		if u != nil {
			shown := showUser(u)
			if err := cmp.Or(r.o.IfUser(&shown), r.mayEndOperator(u)); err != nil {
				return clientcfg.Event{}, err
			}
			ch.before = userDoc{u.Name, u.Operator}
		}
		return r.event(ch)
	}
	u, err := r.o.Store.User(ctx, name)
	switch {
	case err == nil:
		_, err = judge(&u)
	case errors.Is(err, grants.ErrUnreadableUser):
		err = nil
	}
	if err == nil { // what belongs to the user first, so that a second call removes what is left
		err = errors.Join(r.grants.ForgetAgreements(ctx, name), r.grants.ForgetKnown(ctx, name))
	}
	if err == nil {
		err = r.o.Store.DeleteUser(ctx, name, judge)
	}
	if err != nil {
		return name, fmt.Errorf("user %q: %w", name, err)
	}
	return name, nil
}
