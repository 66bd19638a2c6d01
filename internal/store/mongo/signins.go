package mongo

import (
	"context"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// SessionsOf implements [grants.SignIns]. A session that cannot be read is not in it.
func (s *Store) SessionsOf(ctx context.Context, username string) (list []grants.Session, err error) {
	if !utf8.ValidString(username) {
		return nil, nil
	}
	err = s.do(ctx, "read sessions of user", func(ctx context.Context) error {
		newestFirst := bson.D{{Key: "createdAt", Value: -1}, {Key: "_id", Value: -1}}
		docs, err := findAll[bson.Raw](ctx, s.sessions, bson.D{{Key: "username", Value: username}}, options.Find().SetSort(newestFirst))
		list = make([]grants.Session, 0, len(docs))
		for _, raw := range docs {
			if session, err := storedSession(raw); err == nil {
				list = append(list, session)
			}
		}
		return err
	})
	return list, err
}

// familiesAtOnce is the size of a batch.
const familiesAtOnce = 1000

// FamiliesOf implements [grants.SignIns]. The timeout is that of each batch.
func (s *Store) FamiliesOf(ctx context.Context, username string, each func([]grants.Family) error) error {
	if !utf8.ValidString(username) {
		return nil
	}
	const operation = "read families of user"
	families := bson.D{{Key: "username", Value: username}, {Key: "generation", Value: bson.D{{Key: "$gte", Value: int64(1)}}}}
	var cursor *mongo.Cursor
	err := s.do(ctx, operation, func(ctx context.Context) (err error) {
		cursor, err = s.grants.Find(ctx, families, options.Find().SetBatchSize(familiesAtOnce).SetComment(comment(ctx)))
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for more := true; more; {
		var some []grants.Family
		err := s.do(ctx, operation, func(ctx context.Context) error {
			for more = cursor.Next(ctx); more; more = cursor.Next(ctx) {
				var doc grantDoc
				if cursor.Decode(&doc) == nil {
					if f, err := doc.family(secret.Digest{}); err == nil {
						some = append(some, f)
					}
				}
				if cursor.RemainingBatchLength() == 0 {
					break
				}
			}
			return cursor.Err()
		})
		if err == nil && len(some) > 0 {
			err = each(some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
