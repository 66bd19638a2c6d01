package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/store"
)

// ttlStore adds the TTL monitor of the server, which removes expired documents. The store never
// removes them itself, so no clock of an instance decides which documents are deleted. The suite
// calls the monitor when it needs to, with a time of its choice.
type ttlStore struct{ *Store }

var _ store.Sweeper = ttlStore{}

// Sweep removes the documents that expired before now, as the TTL indexes do, and returns how many
// of them were records.
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
