package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oauth-server/internal/store"
)

// A record of the table "sessions" is a document of the collection of that name:
//
//	_id:     its key
//	value:   its value, an embedded document
//	owner:   absent without one
//	expire:  when it may be removed, by a TTL index; absent: never
//	version, nonce
//	changed: when it was written, by the server's clock
//
// Other fields are ignored, and stay unchanged when the record is written.
//
// When an entry of the trail deletes a record, a tombstone stays for a day: a document with gone:
// true and no value. It keeps a late write of an older entry from bringing the record back.

// tombstoneFor is much longer than any write can be under way.
const tombstoneFor = 24 * time.Hour

// fieldsOf returns the fields of a record that its writer sets.
func fieldsOf(r *store.Record) (bson.D, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	value, err := documentOf(r.Value)
	if err != nil {
		return nil, err
	}
	set := bson.D{{Key: "value", Value: value}, {Key: "version", Value: r.Version}, {Key: "nonce", Value: r.Nonce}}
	if r.Owner != "" {
		set = append(set, bson.E{Key: "owner", Value: r.Owner})
	}
	if !r.Expires.IsZero() {
		set = append(set, bson.E{Key: "expire", Value: r.Expires})
	}
	return set, nil
}

// tombstone returns the fields of a tombstone.
func tombstone(version, nonce int64) bson.D {
	expire := time.Now().Add(tombstoneFor)
	return bson.D{{Key: "gone", Value: true}, {Key: "version", Value: version}, {Key: "nonce", Value: nonce}, {Key: "expire", Value: expire}}
}

// replacing returns the update that replaces all fields of a document with the given ones.
func replacing(set bson.D) bson.D {
	var unset bson.D
	for _, name := range []string{"value", "owner", "expire", "gone"} {
		if !slices.ContainsFunc(set, func(e bson.E) bool { return e.Key == name }) {
			unset = append(unset, bson.E{Key: name, Value: ""})
		}
	}
	return bson.D{
		{Key: "$set", Value: set},
		{Key: "$unset", Value: unset},
		{Key: "$currentDate", Value: bson.D{{Key: "changed", Value: true}}},
	}
}

// newer returns the upsert of a record for a bulk. It fails with a duplicate key if the record
// exists in the same or a greater version.
func newer(key any, version int64, set bson.D) mongo.WriteModel {
	below := bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: version}}}} // or absent, or not a number
	filter := append(byID(key), bson.E{Key: "version", Value: below})
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(replacing(set)).SetUpsert(true)
}

// inState returns the filter for a record in a state. For the zero state it matches a tombstone: an
// upsert replaces the tombstone or inserts the record, and fails with a duplicate key if the record
// exists.
func inState(key any, seen store.Seen) bson.D {
	if seen == (store.Seen{}) {
		return append(byID(key), bson.E{Key: "gone", Value: true})
	}
	return append(byID(key), bson.E{Key: "version", Value: seen.Version}, bson.E{Key: "nonce", Value: seen.Nonce})
}

// reader reads records, with one buffer for their values.
type reader struct {
	record store.Record
	gone   bool
	buffer []byte
}

// read reads a document, and returns false for a tombstone. Of an unreadable document it keeps the
// readable fields.
func (rd *reader) read(doc bson.Raw) bool {
	rd.record, rd.gone = store.Record{}, false
	var wrong error
	err := elements(doc, func(e bsoncore.Element) error {
		if err := rd.field(e.KeyBytes(), e.Value()); err != nil {
			wrong = fmt.Errorf("%s: %w", e.Key(), err)
		}
		return nil
	})
	err = cmp.Or(err, wrong)
	if err == nil && !rd.gone && (rd.record.Value == nil || rd.record.Version < 1 || rd.record.Nonce == 0) {
		err = errors.New("value, version or nonce is missing")
	}
	if err != nil {
		rd.record.Value, rd.record.Err = nil, unreadable(err)
	}
	return !rd.gone
}

func (rd *reader) field(name []byte, v bsoncore.Value) (err error) {
	r, ok := &rd.record, true
	switch string(name) {
	case "_id":
		r.Key, ok = v.StringValueOK()
	case "value":
		if ok = v.Type == bsoncore.TypeEmbeddedDocument; ok {
			rd.buffer, err = appendObject(rd.buffer[:0], v.Data, false, 0)
			r.Value = rd.buffer
		}
	case "owner":
		r.Owner, ok = v.StringValueOK()
	case "expire":
		r.Expires, ok = v.TimeOK()
	case "version":
		r.Version, ok = whole(bson.RawValue{Type: bson.Type(v.Type), Value: v.Data})
	case "nonce": // a rounded nonce would match no document, so no write would ever succeed
		r.Nonce, ok = whole(bson.RawValue{Type: bson.Type(v.Type), Value: v.Data})
	case "changed":
		r.Changed, ok = v.TimeOK()
	case "gone":
		rd.gone, ok = v.BooleanOK()
	}
	if !ok {
		err = fmt.Errorf("it is of type %s", bson.Type(v.Type))
	}
	return err
}

func unreadable(err error) error { return fmt.Errorf("%w: %w", store.ErrUnreadable, err) }

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
	id := bson.D{{Key: "$gt", Value: text(q.After)}} // true for texts only: other _ids are not keys
	if q.Prefix != "" {
		last := q.Prefix + strings.Repeat(string(utf8.MaxRune), store.MaxKey/utf8.UTFMax)
		id = append(id, bson.E{Key: "$gte", Value: text(q.Prefix)}, bson.E{Key: "$lte", Value: text(last)})
	}
	filter := append(byID(id), bson.E{Key: "gone", Value: bson.D{{Key: "$ne", Value: true}}})
	if q.Owner != "" {
		filter = append(filter, bson.E{Key: "owner", Value: text(q.Owner)})
	}
	if !q.ChangedSince.IsZero() {
		since := q.ChangedSince.Add(-store.ChangedOverlap)
		filter = append(filter, bson.E{Key: "changed", Value: bson.D{{Key: "$gte", Value: since}}})
	}
	opts := options.Find().SetSort(byID(1)).SetLimit(int64(q.Limit))
	if q.Omit != "" {
		opts.SetProjection(field("value."+q.Omit, 0))
	}
	return s.eachRecord(ctx, "list "+t.Name, t, filter, opts, each)
}

// text returns a value that matches a stored text. BSON texts are UTF-8, so text returns any other
// string as bytes, which match no text.
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

// Sizes of commands: how many documents one command returns, and how many it writes. Each command
// has the timeout of the store.
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
		if cursor.RemainingBatchLength() > 0 { // the next document needs no command
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

// outcome finds out whether an unacknowledged write took place. Its reply may have been lost, or a
// retry of the driver may have conflicted with its own first attempt. outcome returns nil if the
// nonce shows that the write took place, and [store.ErrConflict] if it did not and never will.
// Otherwise it returns the cause, if that is not a reply. The caller's context may have ended, so
// outcome uses a short timeout instead.
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
	case !absent && stored != seen && stored.Version <= seen.Version+1: // another write has taken its place
		return store.ErrConflict
	}
	return cause // the write may still arrive
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

// putNewer sends upserts of [newer] in one bulk. A duplicate key means that the record exists in
// the same or a newer version, or that another upsert inserted an older version at the same time.
// So these writes are sent once more.
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
