package mongo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oauth-server/internal/store"
)

// A record of the table "sessions" is a document of the collection of that name:
//
//	_id:     its key
//	value:   its value, an embedded document
//	owner:   absent if it belongs to nobody
//	expire:  when it may be removed, by a TTL index; absent: never
//	version, nonce
//	changed: when it was written, by the clock of the server
//
// Other fields are ignored, and stay when the record is written.
//
// A record that an entry of the trail has deleted leaves a tombstone for a day: a document with gone: true
// and no value, which keeps a late write of an older entry from bringing the record back.

// tombstoneFor is much longer than any write may be under way.
const tombstoneFor = 24 * time.Hour

// newNonce returns the nonce of a write.
func newNonce() int64 { return 1 + rand.Int64N(1<<62) } //nolint:gosec // tells writes apart; no secret

// recordUpdate returns the update that stores a record, whatever is there.
func recordUpdate(r *store.Record) (bson.D, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	value, err := documentOf(r.Value)
	if err != nil {
		return nil, err
	}
	return update(bson.D{{Key: "value", Value: value}}, r), nil
}

// tombstoneUpdate returns the update that leaves a tombstone of a record, whatever is there.
func tombstoneUpdate(r *store.Record) bson.D {
	gone := store.Record{Version: r.Version, Nonce: r.Nonce, Expires: time.Now().Add(tombstoneFor)}
	return update(bson.D{{Key: "gone", Value: true}}, &gone)
}

// update returns the update that sets those fields, and the others of a record.
func update(set bson.D, r *store.Record) bson.D {
	var unset bson.D
	for _, field := range []string{"gone", "value"} {
		if field != set[0].Key {
			unset = append(unset, bson.E{Key: field, Value: ""})
		}
	}
	set = append(set, bson.E{Key: "version", Value: r.Version}, bson.E{Key: "nonce", Value: r.Nonce})
	if r.Owner == "" {
		unset = append(unset, bson.E{Key: "owner", Value: ""})
	} else {
		set = append(set, bson.E{Key: "owner", Value: r.Owner})
	}
	if r.Expires.IsZero() {
		unset = append(unset, bson.E{Key: "expire", Value: ""})
	} else {
		set = append(set, bson.E{Key: "expire", Value: r.Expires})
	}
	return bson.D{
		{Key: "$set", Value: set},
		{Key: "$unset", Value: unset},
		{Key: "$currentDate", Value: bson.D{{Key: "changed", Value: true}}},
	}
}

// newer returns the upsert of a record for a bulk: it fails with a duplicate key if a record of that key
// with the same or a greater version is there.
func newer(r *store.Record, update bson.D) *mongo.UpdateOneModel {
	below := bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: r.Version}}}} // or absent, or no number
	filter := append(byID(r.Key), bson.E{Key: "version", Value: below})
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(update).SetUpsert(true)
}

// inState returns the filter for a record in a state. For the zero state it is that of a tombstone: an
// upsert replaces one or inserts the record, and fails with a duplicate key if there is a record.
func inState(key string, seen store.Seen) bson.D {
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

// read reads a document, and returns false for a tombstone.
func (rd *reader) read(doc bson.Raw) bool {
	rd.record, rd.gone = store.Record{}, false
	if err := eachField(doc, rd.field); err != nil {
		rd.record.Value, rd.record.Err = nil, unreadable(err)
	} else if !rd.gone && (rd.record.Value == nil || rd.record.Version < 1) {
		rd.record.Err = unreadable(errors.New("value or version is missing"))
	}
	return !rd.gone
}

func (rd *reader) field(name string, v bsoncore.Value) (err error) {
	var ok bool
	r := &rd.record
	switch name {
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
		r.Version, ok = v.AsInt64OK()
	case "nonce":
		r.Nonce, ok = v.AsInt64OK()
	case "changed":
		r.Changed, ok = v.TimeOK()
	case "gone":
		rd.gone, ok = v.BooleanOK()
	default:
		ok = true
	}
	return fieldError(name, v, ok, err)
}

// eachField calls do with the fields of a document, all of them, and returns the first error.
func eachField(doc []byte, do func(name string, v bsoncore.Value) error) (first error) {
	elements, err := bsoncore.Document(doc).Elements()
	for _, e := range elements {
		if err := do(e.Key(), e.Value()); first == nil {
			first = err
		}
	}
	return errors.Join(first, err)
}

// fieldError returns the error of a field that is not ok.
func fieldError(name string, v bsoncore.Value, ok bool, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case !ok:
		return fmt.Errorf("%s is of type %s", name, bson.Type(v.Type))
	}
	return nil
}

func unreadable(err error) error { return fmt.Errorf("%w: %w", store.ErrUnreadable, err) }
