package clientcfg

import (
	"context"
	"time"
)

// RenewWithin is how long a request waits for the newest policies or clients.
const RenewWithin = 2 * time.Second

// Renew makes the snapshot at least as new as the store is now. It is for requests: those that wait at the
// same time share one read, and none waits for longer than two seconds. After an error the last good
// snapshot stays in use, and the Status says since when it is known to be the newest.
func (s *PolicySource) Renew(ctx context.Context) error {
	before := s.begun.Load()
	// The read is for the others too, so it does not end with the caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RenewWithin)
	defer cancel()
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.release()
	if s.begun.Load() != before && s.Status().Err == nil {
		return nil // a read began after this call, and has ended
	}
	return s.refresh(ctx)
}

// take waits for the turn to refresh or change the policies.
func (s *PolicySource) take(ctx context.Context) error {
	return s.turn.take(ctx, "the policies")
}

func (s *PolicySource) release() { s.turn.release() }
