package registry

import (
	"context"

	"oauth-server/internal/clientcfg"
)

const actionRestore = "restore"

// Restoring records that the store will be replaced, and requests that by calling do. The outcome
// is unknown at this point, because this store is replaced. If this store is put back, the
// replacement has failed.
func (r *Service) Restoring(ctx context.Context, do func() error) error {
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

// RestoreEvent returns the event of a restore, for the store that replaces the old one.
func (r *Service) RestoreEvent(details any) (clientcfg.Event, error) {
	return r.newEvent(change{action: actionRestore, target: clientcfg.StoreTarget, after: details})
}
