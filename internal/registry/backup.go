package registry

import (
	"context"
	"errors"

	"oauth-server/internal/clientcfg"
)

const actionRestore = "restore"

// Backup records that the store is copied, which do does. If the copy ends early its event stays open: a
// part of it was given away.
func (r *Registry) Backup(ctx context.Context, do func() error) error {
	return r.record(ctx, change{action: clientcfg.BackupAction, target: clientcfg.StoreTarget}, do)
}

// errAsked leaves the event of a restoration open.
var errAsked = errors.New("asked for")

// Restoring records that the store will be replaced, which do asks for. The event stays open: this store
// is replaced, and if it is put back, the replacement has failed.
func (r *Registry) Restoring(ctx context.Context, do func() error) error {
	var failed error
	err := r.record(ctx, change{action: actionRestore, target: clientcfg.StoreTarget}, func() error {
		if failed = do(); failed != nil {
			return clientcfg.ErrConflict // nothing was done, so the event is removed
		}
		return errAsked
	})
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, errAsked):
		return nil
	}
	return err
}

// RestoreEvent returns the event of a restoration, for the store that takes the place.
func (r *Registry) RestoreEvent(details any) (clientcfg.Event, error) {
	e, err := r.event(change{action: actionRestore, target: clientcfg.StoreTarget, after: details})
	e.Open = false
	return e, err
}
