package mongo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// replacing returns the update that gives a document those fields in the place of the ones that it has.
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

// newer returns the upsert of a record for a bulk: it fails with a duplicate key if a record of that key
// with the same or a greater version is there.
func newer(key any, version int64, set bson.D) mongo.WriteModel {
	below := bson.D{{Key: "$not", Value: bson.D{{Key: "$gte", Value: version}}}} // or absent, or no number
	filter := append(byID(key), bson.E{Key: "version", Value: below})
	return mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(replacing(set)).SetUpsert(true)
}

// inState returns the filter for a record in a state. For the zero state it is that of a tombstone: an
// upsert replaces one or inserts the record, and fails with a duplicate key if there is a record.
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

// read reads a document, and returns false for a tombstone. Of one that cannot be read it keeps what can.
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
	case "nonce": // one that was rounded would match no document, and no write would ever succeed
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
