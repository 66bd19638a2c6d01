package main

import (
	"context"
	"errors"
	"fmt"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/registry"
)

// unanswered is an error for a change that the store neither confirmed nor refused. The change may
// have been made.
type unanswered struct {
	err   error
	state string // the unknown state and the next step
}

func (u *unanswered) Error() string { return u.err.Error() + "; " + u.state }
func (u *unanswered) Unwrap() error { return u.err }

// marking is a store that returns *[unanswered] for changes of clients and users with an unknown
// outcome.
type marking struct{ app.Store }

// mark returns err as *[unanswered], unless it is one of the store's own errors: with those, the
// store refused the change.
func mark(err error, state, name string) error {
	if err == nil {
		return nil
	}
	var lockOut *registry.LockOutError
	if errors.As(err, &lockOut) {
		return err
	}
	for _, refusal := range []error{
		clientcfg.ErrExists, clientcfg.ErrNotFound, clientcfg.ErrConflict, clientcfg.ErrUnreadableClient,
		grants.ErrExists, grants.ErrNotFound, grants.ErrUnreadableUser,
	} {
		if errors.Is(err, refusal) {
			return err
		}
	}
	return &unanswered{err, fmt.Sprintf(state, name)}
}

func (m marking) CreateClient(ctx context.Context, c clientcfg.Client, e clientcfg.Event) error {
	return mark(m.Store.CreateClient(ctx, c, e), "the client may have been created: oauth-server client show '%[1]s' says so;"+
		" a secret that was made for it is lost then: client rotate-secret '%[1]s' gives it another one, or client delete '%[1]s' and create it again", c.ID)
}

func (m marking) UpdateClient(ctx context.Context, c clientcfg.Client, e clientcfg.Event) error {
	return mark(m.Store.UpdateClient(ctx, c, e), "the client may have been changed: look at oauth-server client show '%[1]s';"+
		" a new secret is lost: client rotate-secret '%[1]s' once more, which may end the secret that is in use, also with --overlap", c.ID)
}

func (m marking) DeleteClient(ctx context.Context, id string, e clientcfg.Event) error {
	return markDeletion(m.Store.DeleteClient(ctx, id, e), id)
}

func (m marking) DeleteUnchanged(ctx context.Context, c clientcfg.Client, e clientcfg.Event) error {
	return markDeletion(m.Store.DeleteUnchanged(ctx, c, e), c.ID)
}

func markDeletion(err error, id string) error {
	return mark(err, "the client may have been deleted: if oauth-server client show '%[1]s' still shows it, delete it again", id)
}

func (m marking) CreateUser(ctx context.Context, u grants.User, e clientcfg.Event) error {
	return mark(m.Store.CreateUser(ctx, u, e), "the user may have been created, with that password: oauth-server user list says so;"+
		" if %q is not in it, create the user again", u.Name)
}

func (m marking) ChangeUser(ctx context.Context, name string, edit grants.UserEdit) error {
	return mark(m.Store.ChangeUser(ctx, name, edit), "the user %q may have been changed: run the command again, which does no harm if so", name)
}

func (m marking) DeleteUser(ctx context.Context, name string, judge grants.UserEdit) error {
	return mark(m.Store.DeleteUser(ctx, name, judge), "the user may have been deleted: if oauth-server user list still shows %q, delete the user again", name)
}
