package mongo

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/clientcfg"
)

// WatchPolicies implements [clientcfg.PolicyWatcher] with a change stream. A
// server that refuses one (it is no replica set, only speaks the protocol, or
// grants no right to it) leaves its instances to polling.
func (s *Store) WatchPolicies(ctx context.Context, changed func()) error {
	stream, err := s.policies.Watch(ctx, mongo.Pipeline{})
	var refused mongo.ServerError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %w", clientcfg.ErrNoWatch, err)
	case err != nil:
		return fmt.Errorf("mongo: watch policies: %w", err)
	}
	changed() // what happened before the stream was open
	for stream.Next(ctx) {
		changed()
	}
	err = errors.Join(stream.Err(), stream.Close(context.WithoutCancel(ctx)))
	if err != nil {
		return fmt.Errorf("mongo: watch policies: %w", err)
	}
	return nil
}
