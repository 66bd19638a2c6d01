package mongo

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/syncer"
)

// CountersOf implements admin.StoredCounters. Like [Store.EraseCounters] it
// looks at every counter until it has found enough.
func (s *Store) CountersOf(ctx context.Context, clientID string, limit int) (records []syncer.Record, err error) {
	err = s.do(ctx, "counters of a client", func(ctx context.Context) error {
		cursor, err := s.counters.Find(ctx, bson.D{{Key: "_id.clientId", Value: clientID}}, options.Find().SetLimit(int64(limit)))
		if err != nil {
			return fmt.Errorf("find: %w", err)
		}
		for cursor.Next(ctx) {
			records = append(records, counterRecord(cursor.Current))
		}
		return errors.Join(cursor.Err(), cursor.Close(ctx))
	})
	return records, err
}

// EraseCounters implements admin.Eraser. It looks at every counter, which an
// operator's rare reset can afford and an index on each write could not.
func (s *Store) EraseCounters(ctx context.Context, clientID string, username *string) error {
	filter := bson.D{{Key: "_id.clientId", Value: clientID}}
	if username != nil {
		filter = append(filter, bson.E{Key: "_id.username", Value: *username})
	}
	return s.do(ctx, "erase counters", func(ctx context.Context) error {
		_, err := s.counters.DeleteMany(ctx, filter)
		return err
	})
}
