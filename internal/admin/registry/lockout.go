package registry

import (
	"context"
	"fmt"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
)

// LockOutError is returned for a change that would lock operators out of making changes.
type LockOutError struct {
	Name string // of the client or user
	Own  bool   // it is the one that makes the change
}

// Error implements error.
func (e *LockOutError) Error() string {
	if e.Own {
		return fmt.Sprintf("%q makes this change, and could not make another one afterwards", e.Name)
	}
	return fmt.Sprintf("%q is the last client that can change clients and users: without it you can change them only in the store", e.Name)
}

// demoting is held from looking for another registering client until the change is made. Otherwise
// two concurrent changes in this process could each rely on the other's client.
var demoting = make(chan struct{}, 1)

// mayLockOut returns a *[LockOutError] if the change, or the deletion if after is nil, takes the
// right to register clients from the operator's own client or from the last such client, unless
// that was confirmed. Another such change has to wait until this one ends: see [change.end].
func (r *Service) mayLockOut(ctx context.Context, ch *change, before, after *clientcfg.Client) error {
	if !before.Registers() || after != nil && after.Registers() || r.o.Confirmed == before.ID {
		return nil
	}
	if r.o.By.ClientID == before.ID {
		return &LockOutError{before.ID, true}
	}
	select {
	case demoting <- struct{}{}:
		ch.demotes = true
	case <-ctx.Done():
		return ctx.Err()
	}
	d, err := clientcfg.ReadDirectory(ctx, r.o.Store)
	if err != nil {
		return err
	}
	for c := range d.All() {
		if c.ID != before.ID && c.Registers() {
			return nil
		}
	}
	return &LockOutError{before.ID, false}
}

// end allows the next change to be checked by mayLockOut.
func (ch *change) end() {
	if ch.demotes {
		<-demoting
	}
}

// mayEndOperator returns a *[LockOutError] if u is the operator's own user, unless that was
// confirmed.
func (r *Service) mayEndOperator(u *accounts.User) error {
	if u.Operator == clientcfg.WriteAccess && r.o.By.Username == u.Name && r.o.Confirmed != u.Name {
		return &LockOutError{u.Name, true}
	}
	return nil
}
