package mongo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/store"
)

// Get implements [store.Backend].
func (s *Store) Get(ctx context.Context, t store.Table, each func(store.Record) error, keys ...string) error {
	filter, opts := byID(anyOf(keys)), options.Find()
	switch len(keys) {
	case 0:
		return nil
	case 1:
		filter = byID(text(keys[0]))
		opts.SetLimit(-1) // without a cursor
	}
	return s.eachRecord(ctx, "get "+t.Name, t, filter, opts, each)
}

// List implements [store.Backend].
func (s *Store) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	id := bson.D{{Key: "$gt", Value: text(q.After)}} // true of texts only: other _ids are no keys
	if q.Prefix != "" {
		last := q.Prefix + strings.Repeat(string(utf8.MaxRune), store.MaxKey/utf8.UTFMax)
		id = append(id, bson.E{Key: "$gte", Value: text(q.Prefix)}, bson.E{Key: "$lte", Value: text(last)})
	}
	filter := append(byID(id), bson.E{Key: "gone", Value: nil})
	if q.Owner != "" {
		filter = append(filter, bson.E{Key: "owner", Value: text(q.Owner)})
	}
	if !q.ChangedSince.IsZero() {
		since := q.ChangedSince.Add(-store.ChangedOverlap)
		filter = append(filter, bson.E{Key: "changed", Value: bson.D{{Key: "$gte", Value: since}}})
	}
	opts := options.Find().SetSort(byID(1)).SetLimit(int64(q.Limit))
	return s.eachRecord(ctx, "list "+t.Name, t, filter, opts, each)
}

// text returns what matches a stored text. What is not UTF-8 is no text in BSON: as bytes it matches nothing.
func text(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return []byte(s)
}

func anyOf(keys []string) bson.D {
	all := make(bson.A, len(keys))
	for i, key := range keys {
		all[i] = text(key)
	}
	return bson.D{{Key: "$in", Value: all}}
}

func (s *Store) eachRecord(ctx context.Context, operation string, t store.Table, filter bson.D,
	opts *options.FindOptionsBuilder, each func(store.Record) error,
) error {
	var rd reader
	return s.find(ctx, operation, s.db.Collection(t.Name), filter, opts.SetBatchSize(batch), func(doc bson.Raw) error {
		if !rd.read(doc) {
			return nil
		}
		return each(rd.record)
	})
}

// Sizes of commands: how many documents one returns, and how many it writes. Each has the timeout of the
// store.
const (
	batch  = 5000
	atOnce = 1000
)

// find calls each with the documents that match, until it fails. Each of its commands has the timeout of the store.
// A document is only valid during the call.
func (s *Store) find(ctx context.Context, operation string, c *mongo.Collection, filter bson.D,
	opts *options.FindOptionsBuilder, each func(bson.Raw) error,
) error {
	var cursor *mongo.Cursor
	more := false
	next := func(ctx context.Context) error {
		more = cursor.Next(ctx)
		return cursor.Err()
	}
	err := s.do(ctx, operation, func(ctx context.Context) (err error) {
		if cursor, err = c.Find(ctx, filter, opts.SetComment(comment(ctx))); err != nil {
			return err
		}
		return next(ctx)
	})
	if cursor != nil {
		defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	}
	for err == nil && more {
		if err = each(cursor.Current); err != nil {
			return err
		}
		if cursor.RemainingBatchLength() > 0 { // without a command
			err = errors.Join(ctx.Err(), next(ctx))
		} else {
			err = s.do(ctx, operation, next)
		}
	}
	return err
}

// Put implements [store.Backend].
func (s *Store) Put(ctx context.Context, t store.Table, r store.Record, seen store.Seen) (store.Seen, error) {
	r.Version, r.Nonce = seen.Version+1, store.NewNonce()
	set, err := fieldsOf(&r)
	if err != nil {
		return store.Seen{}, fmt.Errorf("mongo: put %s: %w", t.Name, err)
	}
	err = s.do(ctx, "put "+t.Name, func(ctx context.Context) error {
		c := s.db.Collection(t.Name)
		result, err := c.UpdateOne(ctx, inState(r.Key, seen), replacing(set),
			options.UpdateOne().SetUpsert(seen == store.Seen{}).SetComment(comment(ctx)))
		if err == nil && result.MatchedCount+result.UpsertedCount == 1 {
			return nil
		}
		return s.outcome(ctx, c, r.Key, seen, r.Nonce, err)
	})
	if err != nil {
		return store.Seen{}, err
	}
	return r.Seen(), nil
}

// outcome finds out what became of a write that was not acknowledged: its reply may have been lost, or a
// retry of the driver may have met its own first attempt. Nil: the nonce shows that the write took place.
// [store.ErrConflict]: it did not, and never will. Otherwise the cause is returned, if it was no answer.
// The caller's context may have ended, so there is a short timeout instead.
func (s *Store) outcome(ctx context.Context, c *mongo.Collection, id any, seen store.Seen, nonce int64, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), selectionTimeout)
	defer cancel()
	doc, err := c.FindOne(ctx, byID(id), options.FindOne().
		SetProjection(bson.D{{Key: "version", Value: 1}, {Key: "nonce", Value: 1}}).SetComment(comment(ctx))).Raw()
	absent := errors.Is(err, mongo.ErrNoDocuments)
	if err != nil && !absent {
		return errors.Join(cause, fmt.Errorf("look up the write: %w", err))
	}
	var rd reader
	rd.read(doc)
	stored := rd.record.Seen()
	switch {
	case !absent && stored.Nonce == nonce:
		return nil
	case cause == nil || mongo.IsDuplicateKeyError(cause):
		return store.ErrConflict
	case !absent && stored != seen && stored.Version <= seen.Version+1: // it has the place of the write
		return store.ErrConflict
	}
	return cause // the write may be on its way
}

// PutAll implements [store.Backend].
func (s *Store) PutAll(ctx context.Context, t store.Table, records []store.Record) error {
	models := make([]mongo.WriteModel, len(records))
	for i := range records {
		r := records[i]
		r.Nonce = store.NewNonce()
		set, err := fieldsOf(&r)
		if err != nil {
			return fmt.Errorf("mongo: put %s: %w", t.Name, err)
		}
		models[i] = newer(r.Key, r.Version, set)
	}
	for part := range slices.Chunk(models, atOnce) {
		err := s.do(ctx, "put all "+t.Name, func(ctx context.Context) error {
			return putNewer(ctx, s.db.Collection(t.Name), part)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// putNewer sends upserts of [newer] in one bulk. A duplicate key shows that the record is there in the same
// or a newer version, or that another upsert has inserted an older one meanwhile. So those writes are sent
// once more.
func putNewer(ctx context.Context, c *mongo.Collection, models []mongo.WriteModel) error {
	for range 2 {
		var failed mongo.BulkWriteException
		_, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false).SetComment(comment(ctx)))
		if !errors.As(err, &failed) || failed.WriteConcernError != nil {
			return err
		}
		var again []mongo.WriteModel
		for _, e := range failed.WriteErrors {
			if e.Code != duplicateKey || e.Index < 0 || e.Index >= len(models) {
				return err
			}
			again = append(again, models[e.Index])
		}
		models = again
	}
	return nil
}

// Delete implements [store.Backend].
func (s *Store) Delete(ctx context.Context, t store.Table, seen *store.Seen, key string) error {
	filter := byID(text(key))
	if seen != nil {
		filter = inState(text(key), *seen)
	}
	return s.do(ctx, "delete "+t.Name, func(ctx context.Context) error {
		result, err := s.db.Collection(t.Name).DeleteOne(ctx, filter, options.DeleteOne().SetComment(comment(ctx)))
		if err == nil && seen != nil && result.DeletedCount == 0 {
			return store.ErrConflict
		}
		return err
	})
}

// DeleteAll implements [store.Backend].
func (s *Store) DeleteAll(ctx context.Context, t store.Table, keys ...string) error {
	for part := range slices.Chunk(keys, atOnce) {
		err := s.do(ctx, "delete all "+t.Name, func(ctx context.Context) error {
			_, err := s.db.Collection(t.Name).DeleteMany(ctx, byID(anyOf(part)),
				options.DeleteMany().SetComment(comment(ctx)))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
