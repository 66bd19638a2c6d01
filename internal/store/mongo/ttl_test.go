package mongo

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/grants"
)

// ttlStore adds what the server itself does to the documents of a store: its TTL monitor removes
// them once they have expired. The store never does, so that no clock of an instance decides what
// is deleted. The suite calls the monitor when it needs it, with the time that it wants.
type ttlStore struct{ *Store }

var _ grants.Sweeper = ttlStore{}

// Sweep removes what expired before now, as the TTL indexes do, and returns how many records that
// were. The mark that a code was spent is removed as well, but is not a record that a caller has
// stored.
func (s ttlStore) Sweep(ctx context.Context, now time.Time) (removed int, err error) {
	expired := bson.D{{Key: "expire", Value: bson.D{{Key: "$lt", Value: now}}}}
	marks, err := s.grants.DeleteMany(ctx, append(bson.D{{Key: "kind", Value: kindClaim}, {Key: "generation", Value: nil}}, expired...))
	if err != nil || marks == nil {
		return 0, err
	}
	for _, c := range []*mongo.Collection{s.grants, s.sessions, s.revocations, s.agreements, s.counters} {
		result, failed := c.DeleteMany(ctx, expired)
		if failed == nil {
			removed += int(result.DeletedCount)
		}
		err = errors.Join(err, failed)
	}
	return removed, err
}
