package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

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
