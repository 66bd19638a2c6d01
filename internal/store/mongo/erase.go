package mongo

import (
	"context"
	"slices"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/syncer"
)

// CountersOf implements admin.StoredCounters.
func (s *Store) CountersOf(ctx context.Context, clientID string, username *string, limit int) (records []syncer.Record, err error) {
	err = s.do(ctx, "read client counters", func(ctx context.Context) error {
		if !validNames(clientID, username) {
			return nil
		}
		docs, err := findAll[bson.Raw](ctx, s.counters, countersOf(clientID, username), options.Find().SetLimit(int64(limit)))
		for _, raw := range docs {
			records = append(records, counterRecord(raw))
		}
		return err
	})
	return records, err
}

// EraseCounters implements admin.Eraser.
func (s *Store) EraseCounters(ctx context.Context, clientID string, username *string) error {
	return s.do(ctx, "erase counters", func(ctx context.Context) error {
		if !validNames(clientID, username) {
			return nil
		}
		_, err := s.counters.DeleteMany(ctx, countersOf(clientID, username), options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
}

// validNames reports whether the names are UTF-8, as every BSON string is. The username may be nil.
func validNames(clientID string, username *string) bool {
	return utf8.ValidString(clientID) && (username == nil || utf8.ValidString(*username))
}

// countersOf returns the filter for the counters of a client, or of one of its usernames. It is a
// range of _ids, so the index finds them: MongoDB compares documents field by field, a document
// without further fields comes before one with further fields, and MaxKey after every string.
func countersOf(clientID string, username *string) bson.D {
	from, next := bson.D{{Key: "clientId", Value: clientID}}, "username"
	if username != nil {
		from, next = append(from, bson.E{Key: next, Value: *username}), "limit"
	}
	to := slices.Concat(from, bson.D{{Key: next, Value: bson.MaxKey{}}})
	return byID(bson.D{{Key: "$gte", Value: from}, {Key: "$lte", Value: to}})
}
