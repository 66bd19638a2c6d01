package mongo

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// WatchPolicies implements [clientcfg.PolicyWatcher] with a change stream of the trail. The error is
// [clientcfg.ErrNoWatch] if the server refuses one, because it is no replica set, does not
// implement change streams, or the user has no right to them: instances then find changes by
// polling alone.
func (s *Store) WatchPolicies(ctx context.Context, changed func()) error {
	ctx = withOperation(ctx, "watch policies")
	inserts := mongo.Pipeline{{{Key: "$match", Value: bson.D{{Key: "operationType", Value: "insert"}}}}} // the sweep deletes
	stream, err := s.audit.Watch(ctx, inserts, options.ChangeStream().SetComment(comment(ctx)))
	switch {
	case isAnswer(err): // a lost connection has the same type
		return fmt.Errorf("%w: %w", clientcfg.ErrNoWatch, err)
	case err != nil:
		return fmt.Errorf("mongo: watch policies: %w", err)
	}
	changed() // for changes before the stream was open
	for stream.Next(ctx) {
		changed()
	}
	err = errors.Join(stream.Err(), stream.Close(context.WithoutCancel(ctx)))
	if err != nil {
		return fmt.Errorf("mongo: watch policies: %w", err)
	}
	return nil
}
