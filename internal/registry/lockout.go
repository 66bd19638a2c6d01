package registry

import (
	"context"
	"fmt"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// LockOutError is a change that would take from operators what they make changes with.
type LockOutError struct {
	Name string // of the client or user
	Own  bool   // the one who makes the change
}

// Error implements error.
func (e *LockOutError) Error() string {
	if e.Own {
		return fmt.Sprintf("%q is what you make this change with, and could make no other one afterwards", e.Name)
	}
	return fmt.Sprintf("%q is the last client that can change clients and users: without it that is possible in the store only", e.Name)
}

// demoting is held from the look for another client that can register until the change is made, so that two
// changes of this process do not each find the client of the other.
var demoting = make(chan struct{}, 1)

// mayLockOut returns a *[LockOutError] for a change, or the end if after is nil, of the client that the
// operator uses, or of the last one that can register others, unless that is confirmed. The change has to end
// before another one is judged: see [change.end].
func (r *Registry) mayLockOut(ctx context.Context, ch *change, before, after *clientcfg.Client) error {
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
	all, err := r.o.AllClients(ctx)
	if err != nil {
		return err
	}
	for c := range all {
		if c.ID != before.ID && c.Registers() {
			return nil
		}
	}
	return &LockOutError{before.ID, false}
}

// end lets the next change be judged by mayLockOut.
func (ch *change) end() {
	if ch.demotes {
		<-demoting
	}
}

// mayEndOperator returns a *[LockOutError] if it is the operator's own user, unless that is confirmed.
func (r *Registry) mayEndOperator(u *grants.User) error {
	if u.Operator == clientcfg.WriteAccess && r.o.By.Username == u.Name && r.o.Confirmed != u.Name {
		return &LockOutError{u.Name, true}
	}
	return nil
}
