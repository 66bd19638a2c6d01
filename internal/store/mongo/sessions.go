package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

type sessionDoc struct {
	Digest    []byte       `bson:"_id"`
	Username  string       `bson:"username"`
	CreatedAt time.Time    `bson:"createdAt"`
	Expire    time.Time    `bson:"expire"`
	UserStamp secret.Stamp `bson:"userStamp,omitempty"`
}

// CreateSession implements [grants.Sessions]. Whichever of several calls at the same time reads last sees
// the sessions of all others. The new session is never removed, also if the clock of the instance that
// made the others is ahead.
func (s *Store) CreateSession(ctx context.Context, session grants.Session, most int) error {
	err := s.insert(ctx, "create session", s.sessions, sessionDoc{
		Digest: session.Digest[:], Username: session.Username, CreatedAt: session.CreatedAt, Expire: session.ExpiresAt,
		UserStamp: session.UserStamp,
	}, grants.ErrExists)
	if err != nil {
		return err
	}
	return s.do(ctx, "end oldest sessions", func(ctx context.Context) error {
		others := bson.D{
			{Key: "username", Value: session.Username},
			{Key: "_id", Value: bson.D{{Key: "$ne", Value: session.Digest[:]}}},
		}
		newestFirst := bson.D{{Key: "createdAt", Value: -1}, {Key: "_id", Value: -1}}
		docs, err := findAll[sessionDoc](ctx, s.sessions, others,
			options.Find().SetSort(newestFirst).SetSkip(int64(most-1)).SetProjection(byID(1)))
		if err != nil || len(docs) == 0 {
			return err
		}
		ids := make(bson.A, len(docs))
		for i, doc := range docs {
			ids[i] = doc.Digest
		}
		_, err = s.sessions.DeleteMany(ctx, byID(bson.D{{Key: "$in", Value: ids}}), options.DeleteMany().SetComment(comment(ctx)))
		return err
	})
}

// Session implements [grants.Sessions].
func (s *Store) Session(ctx context.Context, d secret.Digest) (session grants.Session, err error) {
	err = s.do(ctx, "read session", func(ctx context.Context) error {
		raw, err := s.sessions.FindOne(ctx, byID(d[:]), options.FindOne().SetComment(comment(ctx))).Raw()
		if err != nil {
			return orNotFound(err)
		}
		session, err = storedSession(raw)
		return err
	})
	return session, err
}

func storedSession(raw bson.Raw) (grants.Session, error) {
	var doc sessionDoc
	err := bson.Unmarshal(raw, &doc)
	if err == nil {
		err = checkTimes(doc.CreatedAt, doc.Expire)
	}
	if err != nil {
		return grants.Session{}, fmt.Errorf("decode session: %w", err)
	}
	session := grants.Session{Username: doc.Username, CreatedAt: doc.CreatedAt, ExpiresAt: doc.Expire, UserStamp: doc.UserStamp}
	copy(session.Digest[:], doc.Digest)
	return session, nil
}

// DeleteSession implements [grants.Sessions].
func (s *Store) DeleteSession(ctx context.Context, d secret.Digest) error {
	return s.remove(ctx, "delete session", s.sessions, d[:], nil)
}

// Revoke implements [grants.Revocations]. Of two upserts of one _id at once, one may fail with a
// duplicate key: repeated, it finds the document.
func (s *Store) Revoke(ctx context.Context, name string, until time.Time) error {
	id := secret.DigestOf(name) // the name may have come with a request
	update := bson.D{{Key: "$max", Value: bson.D{{Key: "expire", Value: until}}}}
	return s.do(ctx, "store revocation", func(ctx context.Context) error {
		for {
			_, err := s.revocations.UpdateOne(ctx, byID(id[:]), update, options.UpdateOne().SetUpsert(true).SetComment(comment(ctx)))
			if !mongo.IsDuplicateKeyError(err) {
				return err
			}
		}
	})
}

// RecordOnce implements [grants.Revocations].
func (s *Store) RecordOnce(ctx context.Context, name string, until time.Time) error {
	id := secret.DigestOf(name)
	return s.insert(ctx, "record once", s.revocations, append(byID(id[:]), bson.E{Key: "expire", Value: until}), grants.ErrExists)
}

// Revoked implements [grants.Revocations].
func (s *Store) Revoked(ctx context.Context, names ...string) (yes bool, err error) {
	ids := make(bson.A, 0, len(names))
	for _, name := range names {
		d := secret.DigestOf(name)
		ids = append(ids, d[:])
	}
	err = s.do(ctx, "read revocations", func(ctx context.Context) error {
		if len(ids) == 0 {
			return nil
		}
		found := s.revocations.FindOne(ctx, byID(bson.D{{Key: "$in", Value: ids}}),
			options.FindOne().SetProjection(byID(1)).SetComment(comment(ctx))).Err()
		if errors.Is(found, mongo.ErrNoDocuments) {
			return nil
		}
		yes = found == nil
		return found
	})
	return yes, err
}
