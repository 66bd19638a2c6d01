package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/gateway/sharing"
)

// subjectDoc is whose a refresh token is. There may be millions, so it has no more.
type subjectDoc struct {
	Key     []byte    `bson:"_id"`
	Subject string    `bson:"subject"`
	Expire  time.Time `bson:"expire"` // the TTL index
}

// Subject implements [sharing.Store].
func (s *Store) Subject(ctx context.Context, k sharing.Key) (e sharing.Entry, err error) {
	err = s.do(ctx, "read user of refresh token", func(ctx context.Context) error {
		raw, err := s.subjects.FindOne(ctx, byID(k[:]), options.FindOne().
			SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: "subject", Value: 1}, {Key: "expire", Value: 1}}).
			SetComment(comment(ctx))).Raw()
		switch {
		case errors.Is(err, mongo.ErrNoDocuments):
			return sharing.ErrNotFound
		case err != nil:
			return err
		}
		var doc subjectDoc
		if err = bson.Unmarshal(raw, &doc); err == nil {
			err = checkTimes(doc.Expire)
		}
		if err != nil {
			return fmt.Errorf("decode user of refresh token: %w", err)
		}
		e = sharing.Entry{Key: k, Subject: doc.Subject, Expires: doc.Expire}
		return nil
	})
	return e, err
}

// PutSubjects implements [sharing.Store], with one unordered bulk of upserts. Of two upserts of one _id at once, one may
// fail with a duplicate key: the entry of the other is stored, and is as good.
func (s *Store) PutSubjects(ctx context.Context, entries []sharing.Entry) error {
	if len(entries) == 0 {
		return ctx.Err()
	}
	models := make([]mongo.WriteModel, len(entries))
	for i := range entries {
		e := &entries[i]
		models[i] = mongo.NewReplaceOneModel().SetFilter(byID(e.Key[:])).SetUpsert(true).
			SetReplacement(subjectDoc{Key: e.Key[:], Subject: e.Subject, Expire: e.Expires})
	}
	return s.do(ctx, "store users of refresh tokens", func(ctx context.Context) error {
		_, err := s.subjects.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false).SetComment(comment(ctx)))
		if onlyDuplicates(err) {
			return nil
		}
		return err
	})
}

// onlyDuplicates reports whether a bulk failed in nothing but duplicate keys.
func onlyDuplicates(err error) bool {
	var bulk mongo.BulkWriteException
	if !errors.As(err, &bulk) || bulk.WriteConcernError != nil || len(bulk.WriteErrors) == 0 {
		return false
	}
	for _, e := range bulk.WriteErrors {
		if !mongo.IsDuplicateKeyError(e) {
			return false
		}
	}
	return true
}
