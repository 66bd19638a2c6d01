package mongo

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// strictUpdate is one update of one document, and MongoDB's result.
type strictUpdate struct {
	name   string
	before bson.D // nil: no document
	filter bson.D // besides the _id
	update bson.D
	plain  bool   // not an upsert
	code   int    // of the error; the document then stays unchanged
	after  bson.D // without the _id; nil if code is sufficient
}

func operator(name string, all ...bson.D) bson.D { return field(name, fields(all...)) }

var (
	strictNoon = time.Date(2100, time.March, 4, 12, 0, 0, 0, time.UTC)
	strictOne  = field("n", int64(1))
)

// TestServerUpdates checks how the test server applies and refuses updates. A server that accepts
// updates that MongoDB refuses would hide a lost count. TestVerify has the forms that the store
// sends.
func TestServerUpdates(t *testing.T) {
	c := scratch(t)
	not := func(seq int64) bson.D { return field("w.a", field("$not", field("$gte", seq))) }
	inc := operator("$inc", field("version", int64(1)))
	for _, tt := range []strictUpdate{
		{name: "$inc of a word", before: field("n", "1"), update: operator("$inc", strictOne), code: 14},
		{name: "$inc of null", before: field("n", nil), update: operator("$inc", strictOne), code: 14},
		{name: "$inc by a word", update: operator("$inc", field("n", "1")), code: 14},
		{name: "$inc beyond int64", before: field("n", int64(math.MaxInt64)), update: operator("$inc", strictOne), code: 2},
		{name: "$inc below int64", before: field("n", int64(math.MinInt64)), update: operator("$inc", field("n", int64(-1))), code: 2},
		{name: "$inc beyond int32", before: field("n", int32(math.MaxInt32)), update: operator("$inc", field("n", int32(1))), after: field("n", int64(math.MaxInt32+1))},
		{name: "$inc of an int32 by an int64", before: field("n", int32(1)), update: operator("$inc", strictOne), after: field("n", int64(2))},
		{name: "$inc makes the path", before: bson.D{}, update: operator("$inc", field("a.b", int64(5))), after: field("a", field("b", int64(5)))},
		{name: "$inc through a number", before: field("a", int64(1)), update: operator("$inc", field("a.b", int64(5))), code: 28},
		{name: "$inc through null", before: field("a", nil), update: operator("$inc", field("a.b", int64(5))), code: 28},
		{name: "nothing of an update with one error", before: field("n", "1"), update: fields(operator("$set", field("etag", int64(7))), operator("$inc", strictOne)), code: 14},
		{
			name: "one path in two operators", before: field("a", field("b", int64(1))),
			update: fields(operator("$inc", field("a.b", int64(1))), operator("$unset", field("a.b", ""))), code: 40,
		},
		{
			name: "a path and its parent", before: bson.D{},
			update: fields(operator("$inc", field("a.b", int64(1))), operator("$set", field("a", bson.D{}))), code: 40,
		},
		{
			name: "conflicting paths where nothing matches", plain: true,
			update: fields(operator("$inc", field("a.b", int64(1))), operator("$unset", field("a", ""))), code: 40,
		},
		{
			name: "$unset of what is not there", before: field("n", int64(3)), update: fields(operator("$inc", strictOne), operator("$unset", field("c.60", ""))),
			after: field("n", int64(4)),
		},
		{name: "$max of a missing field", before: bson.D{}, update: operator("$max", field("e", strictNoon)), after: field("e", strictNoon)},
		{name: "$max of a time over a number", before: field("e", int64(math.MaxInt64)), update: operator("$max", field("e", strictNoon)), after: field("e", strictNoon)},
		{name: "$max of a number under a time", before: field("e", strictNoon), update: operator("$max", field("e", int64(math.MaxInt64))), after: field("e", strictNoon)},
		{name: "another _id", before: bson.D{}, update: operator("$set", field("_id", "other")), code: 66},
		{name: "a part of the _id", before: bson.D{}, update: operator("$set", field("_id.clientId", "other")), code: 66},
		{name: "an unknown operator", before: bson.D{}, update: operator("$incr", strictOne), code: 9},
		{name: "an operator beside a field", before: bson.D{}, update: fields(operator("$inc", strictOne), field("n", int64(1))), code: 9},
		{name: "an empty part of a path", before: bson.D{}, update: operator("$inc", field("a..b", int64(1))), code: 56},
		{name: "a higher sequence, as a double", before: field("w", field("a", 6.0)), filter: not(5), update: inc, code: 11000},
		{name: "a sequence in words", before: field("w", field("a", "6")), filter: not(5), update: inc, after: fields(field("w", field("a", "6")), field("version", int64(1)))},
		{name: "writers that are no document", before: field("w", "none"), filter: not(5), update: inc, after: fields(field("w", "none"), field("version", int64(1)))},
		{name: "no upsert where none is asked for", filter: not(5), update: inc, plain: true},
		{name: "an unknown operator in the filter", before: field("n", int64(1)), filter: field("n", field("$near1y", 1)), update: operator("$inc", strictOne), code: 2},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, c) })
	}
}

// run sends the update and compares the document with MongoDB's result.
func (tt *strictUpdate) run(t *testing.T, c *mongo.Collection) {
	t.Helper()
	id := fields(field("clientId", "shop"), field("username", tt.name))
	if tt.before != nil {
		_, err := c.InsertOne(t.Context(), fields(byID(id), tt.before))
		check.OK(t, err)
	}
	_, err := c.UpdateOne(t.Context(), fields(byID(id), tt.filter), tt.update, options.UpdateOne().SetUpsert(!tt.plain))
	switch {
	case tt.code == 0 && err != nil:
		t.Fatalf("refused: %v", err)
	case tt.code != 0 && !hasCode(err, tt.code):
		t.Errorf("got %v, want code %d", err, tt.code)
	}
	want := tt.after
	if tt.code != 0 {
		want = tt.before
	}
	check.Equal(t, "the document", asJSON(t, stored(t, c, id)), asJSON(t, want))
}

// scratch is an empty collection of a database of its own.
func scratch(t *testing.T) *mongo.Collection {
	t.Helper()
	uri, database := mongotest.Database(t)
	return mongotest.Connect(t, uri).Database(database).Collection("scratch")
}

// stored reads a document; nil if it does not exist.
func stored(t *testing.T, c *mongo.Collection, id any) (doc bson.D) {
	t.Helper()
	err := c.FindOne(t.Context(), byID(id)).Decode(&doc)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		t.Fatal(err)
	}
	return doc
}

// asJSON returns the fields of a document and their values, without the _id. It drops the order:
// the server chooses the order of fields that an update adds. For nil it returns nil.
func asJSON(t *testing.T, doc bson.D) (m map[string]any) {
	t.Helper()
	if doc == nil {
		return nil
	}
	text, err := bson.MarshalExtJSON(doc, true, false)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	check.OK(t, err)
	delete(m, "_id")
	return m
}
