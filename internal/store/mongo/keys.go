package mongo

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/keys"
)

type keyDoc struct {
	Place      string         `bson:"_id"` // algorithm and generation: one key for each
	ID         string         `bson:"kid"`
	Algorithm  keys.Algorithm `bson:"alg"`
	Generation int64          `bson:"generation"`
	PrivateKey []byte         `bson:"privateKey"`
	CreatedAt  time.Time      `bson:"createdAt"`
	ActiveFrom time.Time      `bson:"activeFrom"`
}

// Keys implements [keys.Store].
func (s *Store) Keys(ctx context.Context) (list []keys.Record, err error) {
	err = s.do(ctx, "read signing keys", func(ctx context.Context) error {
		docs, err := findAll[keyDoc](ctx, s.signingKeys, bson.D{}, options.Find())
		for _, d := range docs {
			list = append(list, keys.Record{
				ID: d.ID, Algorithm: d.Algorithm, Generation: d.Generation,
				PrivateKey: d.PrivateKey, CreatedAt: d.CreatedAt, ActiveFrom: d.ActiveFrom,
			})
		}
		return err
	})
	return list, err
}

// AddKey implements [keys.Store].
func (s *Store) AddKey(ctx context.Context, k keys.Record) error {
	return s.insert(ctx, "add signing key", s.signingKeys, keyDoc{
		Place: fmt.Sprintf("%s/%d", k.Algorithm, k.Generation),
		ID:    k.ID, Algorithm: k.Algorithm, Generation: k.Generation,
		PrivateKey: k.PrivateKey, CreatedAt: k.CreatedAt, ActiveFrom: k.ActiveFrom,
	}, keys.ErrExists)
}

// ReplaceKey implements [keys.Store].
func (s *Store) ReplaceKey(ctx context.Context, id string, before, after []byte) error {
	return s.do(ctx, "replace signing key", func(ctx context.Context) error {
		if !utf8.ValidString(id) {
			return keys.ErrConflict
		}
		result, err := s.signingKeys.UpdateOne(ctx,
			bson.D{{Key: "kid", Value: id}, {Key: "privateKey", Value: before}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "privateKey", Value: after}}}},
			options.UpdateOne().SetComment(comment(ctx)))
		if err == nil && result.MatchedCount == 0 {
			return keys.ErrConflict
		}
		return err
	})
}

// DeleteKey implements [keys.Store].
func (s *Store) DeleteKey(ctx context.Context, id string) error {
	return s.do(ctx, "delete signing key", func(ctx context.Context) error {
		if !utf8.ValidString(id) {
			return nil
		}
		_, err := s.signingKeys.DeleteMany(ctx, bson.D{{Key: "kid", Value: id}}, options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
}
