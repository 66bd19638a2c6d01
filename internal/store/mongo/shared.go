package mongo

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/keys"
)

// sharedDoc is a shared secret. Its collection has no index and no validator, so the first insert
// makes it.
type sharedDoc struct {
	Name  string `bson:"_id"`
	Value []byte `bson:"value"`
}

// Shared implements [keys.SharedStore].
func (s *Store) Shared(ctx context.Context, name string) (value []byte, err error) {
	err = s.do(ctx, "read shared secret", func(ctx context.Context) error {
		var doc sharedDoc
		err := s.shared.FindOne(ctx, byID(name), options.FindOne().SetComment(comment(ctx))).Decode(&doc)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil
		}
		value = doc.Value
		return err
	})
	return value, err
}

// PutShared implements [keys.SharedStore]. Where the driver has sent the command twice, it may return
// [keys.ErrSharedChanged] for what it has stored itself.
func (s *Store) PutShared(ctx context.Context, name string, before, after []byte) error {
	if before == nil {
		return s.insert(ctx, "add shared secret", s.shared, sharedDoc{Name: name, Value: after}, keys.ErrSharedChanged)
	}
	return s.do(ctx, "replace shared secret", func(ctx context.Context) error {
		result, err := s.shared.UpdateOne(ctx, append(byID(name), bson.E{Key: "value", Value: before}),
			bson.D{{Key: "$set", Value: bson.D{{Key: "value", Value: after}}}}, options.UpdateOne().SetComment(comment(ctx)))
		if err == nil && result.MatchedCount == 0 {
			return keys.ErrSharedChanged
		}
		return err
	})
}
