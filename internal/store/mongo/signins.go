package mongo

import (
	"context"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// SessionsOf implements [grants.SignIns].
func (s *Store) SessionsOf(ctx context.Context, username string) (list []grants.Session, err error) {
	if !utf8.ValidString(username) {
		return nil, nil
	}
	err = s.do(ctx, "read sessions of user", func(ctx context.Context) error {
		newestFirst := bson.D{{Key: "createdAt", Value: -1}, {Key: "_id", Value: -1}}
		docs, err := findAll[sessionDoc](ctx, s.sessions, bson.D{{Key: "username", Value: username}}, options.Find().SetSort(newestFirst))
		list = make([]grants.Session, 0, len(docs))
		for _, doc := range docs {
			session := grants.Session{Username: doc.Username, CreatedAt: doc.CreatedAt, ExpiresAt: doc.Expire, UserStamp: doc.UserStamp}
			copy(session.Digest[:], doc.Digest)
			list = append(list, session)
		}
		return err
	})
	return list, err
}

// FamiliesOf implements [grants.SignIns].
func (s *Store) FamiliesOf(ctx context.Context, username string, limit int) (list []grants.Family, err error) {
	if !utf8.ValidString(username) {
		return nil, nil
	}
	err = s.do(ctx, "read families of user", func(ctx context.Context) error {
		families := bson.D{{Key: "username", Value: username}, {Key: "generation", Value: bson.D{{Key: "$gte", Value: int64(1)}}}}
		docs, err := findAll[grantDoc](ctx, s.grants, families, options.Find().SetLimit(int64(limit)))
		list = make([]grants.Family, 0, len(docs))
		for _, doc := range docs {
			list = append(list, doc.family(secret.Digest{}))
		}
		return err
	})
	return list, err
}
