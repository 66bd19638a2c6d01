package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/store"
	"oauth-server/internal/strict/fielderr"
)

// User is a user as operators see it.
type User struct {
	Username  string           `json:"username"`
	CreatedAt time.Time        `json:"created_at,omitzero" schema:"readonly"`
	Operator  clientcfg.Access `json:"operator,omitempty"` // access to the admin API; absent: none
	// kind of an imported password hash, until the next correct password
	Foreign    string `json:"imported_hash,omitempty" schema:"readonly"`
	Unreadable string `json:"unreadable,omitempty" schema:"readonly"` // why the user cannot be read; then only the name is known
}

func showUser(u *accounts.User) User {
	return User{
		Username: u.Name, CreatedAt: u.CreatedAt, Operator: u.Operator, Foreign: secret.Foreign(u.PasswordHash),
	}
}

// userDoc is a user as shown in an event.
type userDoc struct {
	Username string           `json:"username"`
	Operator clientcfg.Access `json:"operator,omitempty"`
}

// NewUser is a user to be created, with a password or the hash of one.
type NewUser struct {
	Name     string           `json:"username" schema:"required"`
	Password string           `json:"password,omitempty"`
	Hash     string           `json:"password_hash,omitempty"`                     // argon2id, bcrypt, or PBKDF2 as of Django or passlib
	Operator clientcfg.Access `json:"operator,omitempty" schema:"enum=read|write"` // access to the admin API; absent: none
}

// CreateUser stores a user under the canonical form of the name, with the argon2id hash of the
// password. It does not notice a client with the same name registered at the same moment. Errors:
// [fielderr.Errors], [accounts.ErrExists], [ErrNameOfClient].
func (r *Service) CreateUser(ctx context.Context, n NewUser) (User, error) {
	name, err := r.checkUser(ctx, n)
	if err != nil {
		return User{}, err
	}
	hash := n.Hash
	if hash == "" {
		if hash, err = r.hash(ctx, name, n.Password); err != nil {
			return User{}, err
		}
	}
	u := accounts.User{
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

// Validate returns the name that the user would be stored under. Errors: [fielderr.Errors].
func (n *NewUser) Validate() (string, error) {
	name, bad := username.New(n.Name)
	password := accounts.ValidatePassword(n.Name, n.Password)
	if n.Hash != "" {
		password = secret.CheckForeign(n.Hash)
	}
	return name, append(fielderr.Of(bad), fielderr.Of(password)...).Err()
}

// checkUser returns the name that a new user would be stored under, or why the user cannot be
// created.
func (r *Service) checkUser(ctx context.Context, n NewUser) (string, error) {
	name, err := n.Validate()
	if err != nil {
		return "", err
	}
	switch _, err = r.o.Store.User(ctx, name); {
	case err == nil || errors.Is(err, accounts.ErrUnreadableUser):
		err = accounts.ErrExists
	case errors.Is(err, store.ErrNotFound):
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

func (r *Service) hash(ctx context.Context, name, password string) (string, error) {
	hash, err := r.o.Passwords.Hash(ctx, password)
	if err != nil {
		return "", fmt.Errorf("hash password of user %q: %w", name, err)
	}
	return hash, nil
}

// Users returns a page of users: at most limit users with names greater than after, ordered by
// name.
func (r *Service) Users(ctx context.Context, after string, limit int) ([]User, error) {
	stored, err := r.o.Store.UsersAfter(ctx, after, limit)
	list := make([]User, len(stored))
	for i := range stored {
		if list[i] = showUser(&stored[i].User); stored[i].Err != nil {
			list[i] = User{Username: stored[i].Name, Unreadable: stored[i].Err.Error()}
		}
	}
	return list, err
}

// User returns the user with that name, in any spelling that works for signing in. Errors:
// [store.ErrNotFound], [accounts.ErrUnreadableUser].
func (r *Service) User(ctx context.Context, typed string) (User, error) {
	u, err := r.user(ctx, typed)
	return showUser(&u), err
}

func (r *Service) user(ctx context.Context, typed string) (accounts.User, error) {
	u, err := r.o.Store.User(ctx, username.Stored(typed))
	if err != nil {
		return u, fmt.Errorf("user %q: %w", typed, err)
	}
	return u, nil
}

// SetPassword replaces a user's password and revokes the user, as [Service.RevokeUser] does.
// Errors: [fielderr.Errors], [store.ErrNotFound].
func (r *Service) SetPassword(ctx context.Context, typed, password string) (User, error) {
	u, err := r.User(ctx, typed)
	if err != nil {
		return u, err
	}
	if err := accounts.ValidatePassword(u.Username, password); err != nil {
		return u, err
	}
	hash, err := r.hash(ctx, u.Username, password)
	if err != nil {
		return u, err
	}
	return r.changeUser(ctx, u.Username, "password", func(u *accounts.User) error {
		// In one step, so everything from a sign-in with the old password has a lower count.
		u.PasswordHash, u.Stamp = hash, u.Stamp.Revoked()
		return nil
	})
}

// RevokeUser invalidates everything from a user's sign-ins until now: sessions, codes, refresh
// tokens and access tokens, at once on every instance. Errors: [store.ErrNotFound].
func (r *Service) RevokeUser(ctx context.Context, typed string) (User, error) {
	return r.changeUser(ctx, typed, "revoke", func(u *accounts.User) error {
		u.Stamp = u.Stamp.Revoked()
		return nil
	})
}

// SetOperator sets a user's access to the admin API. If it is already set, nothing is recorded.
// Errors: *[LockOutError], [store.ErrNotFound].
func (r *Service) SetOperator(ctx context.Context, typed string, access clientcfg.Access) (User, error) {
	return r.changeUser(ctx, typed, "operator", func(u *accounts.User) (err error) {
		if u.Operator != access && access != clientcfg.WriteAccess {
			err = r.mayEndOperator(u)
		}
		u.Operator = access
		return err
	})
}

// changeUser changes a user and returns the changed user.
func (r *Service) changeUser(ctx context.Context, typed, action string, edit func(u *accounts.User) error) (shown User, err error) {
	name := username.Stored(typed)
	err = r.o.Store.ChangeUser(ctx, name, func(u *accounts.User) (clientcfg.Event, error) {
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

// UnlockUser ends a user's row of wrong passwords, so new addresses are no longer slowed down. Each
// instance follows with its next attempt. Limits by address stay. Errors: [store.ErrNotFound].
func (r *Service) UnlockUser(ctx context.Context, typed string) (User, error) {
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
			return r.grants.ChangeKnown(ctx, &u, func(k *accounts.Known) { k.EndRow(now) })
		})
	}
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", u.Name, err)
	}
	return shown, nil
}

// DeleteUser removes a user, readable or not. Errors: *[LockOutError], [store.ErrNotFound].
func (r *Service) DeleteUser(ctx context.Context, typed string) error {
	name := username.Stored(typed)
	approve := func(u *accounts.User) (clientcfg.Event, error) {
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
		_, err = approve(&u)
	case errors.Is(err, accounts.ErrUnreadableUser):
		err = nil
	}
	if err == nil { // remove the user's other records first, so a second call can finish the job
		err = errors.Join(r.grants.ForgetAgreements(ctx, name), r.grants.ForgetKnown(ctx, name))
	}
	if err == nil {
		err = r.o.Store.DeleteUser(ctx, name, approve)
	}
	if err != nil {
		return fmt.Errorf("user %q: %w", name, err)
	}
	return nil
}
