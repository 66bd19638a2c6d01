package registry

import (
	"context"

	"oauth-server/internal/clientcfg"
)

const actionRestore = "restore"

// Backup records that the store is copied, which do does. If the copy ends early, a part of it was given away.
func (r *Registry) Backup(ctx context.Context, do func() error) error {
	return r.record(ctx, change{action: clientcfg.BackupAction, target: clientcfg.StoreTarget}, do)
}

// Restoring records that the store will be replaced, which do asks for. Its outcome is unknown here: this
// store is replaced, and if it is put back, the replacement has failed.
func (r *Registry) Restoring(ctx context.Context, do func() error) error {
	e, err := r.event(change{action: actionRestore, target: clientcfg.StoreTarget})
	if err == nil && r.o.Events != nil {
		e.Unknown = true
		err = r.o.Events.AddEvent(ctx, e)
	}
	if err != nil {
		return err
	}
	return do()
}

// RestoreEvent returns the event of a restoration, for the store that takes the place.
func (r *Registry) RestoreEvent(details any) (clientcfg.Event, error) {
	return r.newEvent(change{action: actionRestore, target: clientcfg.StoreTarget, after: details})
}
