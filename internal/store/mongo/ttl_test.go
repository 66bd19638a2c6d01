package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/store"
)

// ttlStore adds what the server itself does to the documents of a store: its TTL monitor removes
// them once they have expired. The store never does, so that no clock of an instance decides what
// is deleted. The suite calls the monitor when it needs it, with the time that it wants.
type ttlStore struct{ *Store }

var _ store.Sweeper = ttlStore{}

// Sweep removes what expired before now, as the TTL indexes do, and returns how many records that were.
func (s ttlStore) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	expired := bson.D{{Key: "expire", Value: bson.D{{Key: "$lt", Value: now}}}}
	for _, c := range []*mongo.Collection{s.counters} {
		result, failed := c.DeleteMany(ctx, expired)
		if failed == nil {
			removed += int(result.DeletedCount)
		}
		err = errors.Join(err, failed)
	}
	return removed, err
}
