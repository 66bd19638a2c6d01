package mongo

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
)

// TestServerRefusesCommands: like MongoDB, the server refuses commands that it does not understand,
// and ignores no part of a command.
func TestServerRefusesCommands(t *testing.T) {
	c := scratch(t)
	_, err := c.InsertOne(t.Context(), byID(1))
	check.OK(t, err)
	update := func(statements ...any) bson.D {
		return fields(field("update", "scratch"), field("updates", append(bson.A{}, statements...)))
	}
	sound := fields(field("q", byID(1)), field("u", operator("$inc", strictOne)))
	index := func(key bson.D, name string, seconds any) bson.D {
		return fields(field("createIndexes", "scratch"), field("indexes", bson.A{
			fields(field("key", key), field("name", name), field("expireAfterSeconds", seconds)),
		}))
	}
	for _, tt := range []struct {
		name    string
		command bson.D
		codes   []int // by release and topology; none: any
	}{
		{"an unknown command", field("noSuchCommand", 1), []int{59}},
		{"an unknown field of update", fields(update(sound), field("orderd", false)), []int{40415}},
		{"an unknown field of one update", update(fields(sound, field("upsrt", true))), []int{40415}},
		{"an unknown field of find", fields(field("find", "scratch"), field("filtr", bson.D{})), []int{40415}},
		{"no update in an update", update(), []int{16}},
		{"more updates than fit", update(slices.Repeat([]any{sound}, 100_001)...), []int{16}},
		{"a delete of two", fields(field("delete", "scratch"), field("deletes", bson.A{fields(field("q", bson.D{}), field("limit", 2))})), []int{9}},
		{"an unknown write concern", fields(update(sound), field("writeConcern", field("w", "majorty"))), nil},
		{"a write concern of more members than there are", fields(update(sound), field("writeConcern", field("w", 9))), nil},
		{"an unknown read concern", fields(field("find", "scratch"), field("readConcern", field("level", "majorty"))), nil},
		{"a TTL index in words", index(field("e", 1), "e", "soon"), []int{14, 67}},
		{"a TTL index of two fields", index(fields(field("e", 1), field("f", 1)), "ef", 0), []int{67}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Database().RunCommand(t.Context(), tt.command).Err()
			known := len(tt.codes) == 0 && err != nil
			for _, code := range tt.codes {
				known = known || hasCode(err, code)
			}
			if !known {
				t.Errorf("got %v, want codes %v", err, tt.codes)
			}
		})
	}
}

// TestServerTTLIndexConflict: an existing index is not changed.
func TestServerTTLIndexConflict(t *testing.T) {
	c := scratch(t)
	index := func(seconds int32) error {
		_, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{
			Keys: field("expire", 1), Options: options.Index().SetName("expire").SetExpireAfterSeconds(seconds),
		})
		return err
	}
	for _, seconds := range []int32{0, 0} {
		check.OK(t, index(seconds))
	}
	if err := index(60); !hasCode(err, 85) {
		t.Errorf("the same index with another time: %v, want code 85", err)
	}
}

// writeCounts are the numbers that a server reports for a batch of writes.
type writeCounts struct {
	N, NModified int
	Upserted     []struct{ Index int }
	WriteErrors  []struct{ Index, Code int }
}

// writeBatch is a command of several writes, and the report of a server that has the documents
// "there" and "also there".
type writeBatch struct {
	name    string
	command bson.D
	want    writeCounts
}

func writeBatches() []writeBatch {
	one := func(q, u bson.D) bson.D { return fields(field("q", q), field("u", u), field("upsert", true)) }
	inc, same := operator("$inc", strictOne), operator("$set", field("n", int64(7)))
	moved := fields(byID("there"), field("n", int64(0)))
	bad := field("n", field("$near1y", 1))
	gone := func(q bson.D) bson.D { return fields(field("q", q), field("limit", 1)) }
	return []writeBatch{
		{
			"unordered inserts", fields(field("insert", "scratch"), field("ordered", false), field("documents", bson.A{byID(1), byID("there"), byID(2)})),
			writeCounts{N: 2, WriteErrors: []struct{ Index, Code int }{{1, 11000}}},
		},
		{
			"ordered inserts", fields(field("insert", "scratch"), field("documents", bson.A{byID(1), byID("there"), byID(2)})),
			writeCounts{N: 1, WriteErrors: []struct{ Index, Code int }{{1, 11000}}},
		},
		{
			"unordered updates", fields(field("update", "scratch"), field("ordered", false), field("updates", bson.A{
				one(byID("new"), inc), one(byID("there"), same), one(moved, inc), one(byID("also new"), same), one(byID("there"), inc),
			})),
			writeCounts{N: 4, NModified: 1, Upserted: []struct{ Index int }{{0}, {3}}, WriteErrors: []struct{ Index, Code int }{{2, 11000}}},
		},
		{
			"ordered updates", fields(field("update", "scratch"), field("updates", bson.A{one(byID("there"), inc), one(moved, inc), one(byID("new"), inc)})),
			writeCounts{N: 1, NModified: 1, WriteErrors: []struct{ Index, Code int }{{1, 11000}}},
		},
		{
			"unordered deletes", fields(field("delete", "scratch"), field("ordered", false), field("deletes", bson.A{gone(byID("there")), gone(bad), gone(byID("also there"))})),
			writeCounts{N: 2, WriteErrors: []struct{ Index, Code int }{{1, 2}}},
		},
		{
			"ordered deletes", fields(field("delete", "scratch"), field("deletes", bson.A{gone(byID("there")), gone(bad), gone(byID("also there"))})),
			writeCounts{N: 1, WriteErrors: []struct{ Index, Code int }{{1, 2}}},
		},
	}
}

// TestServerCounts: n is the number of writes that took place, whatever else failed.
func TestServerCounts(t *testing.T) {
	for _, tt := range writeBatches() {
		t.Run(tt.name, func(t *testing.T) {
			c := scratch(t)
			docs := bson.A{fields(byID("there"), field("n", int64(7))), fields(byID("also there"), field("n", int64(7)))}
			_, err := c.InsertMany(t.Context(), docs)
			check.OK(t, err)
			result := c.Database().RunCommand(t.Context(), tt.command)
			raw, err := result.Raw()
			var partial mongo.CommandError
			if err != nil && !errors.As(err, &partial) {
				var write mongo.WriteException // how the driver returns writeErrors in a reply that is ok
				if !errors.As(err, &write) {
					t.Fatal(err)
				}
				raw = write.Raw
			}
			var got writeCounts
			if err := bson.Unmarshal(raw, &got); err != nil {
				t.Fatalf("%v in %v, %v", err, raw, result.Err())
			}
			check.Equal(t, "result", got, tt.want)
		})
	}
}

// TestServerReadsWhole: a read returns a document as one write left it, never between two fields of
// an update. This holds for the first batch of a cursor and for the next.
func TestServerReadsWhole(t *testing.T) {
	c := scratch(t)
	const names, rounds = 40, 300
	all := func(value int) (doc bson.D) {
		for i := range names {
			doc = append(doc, bson.E{Key: string(rune('A' + i)), Value: value})
		}
		return doc
	}
	_, err := c.InsertMany(t.Context(), bson.A{fields(byID("x"), all(0)), fields(byID("y"), all(0))})
	check.OK(t, err)
	failed := make(chan error, 1)
	go func() {
		for round := range rounds {
			if _, err := c.UpdateMany(t.Context(), bson.D{}, operator("$set", all(round))); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for {
		cursor, err := c.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(1))
		check.OK(t, err)
		var docs []bson.D
		if err := cursor.All(t.Context(), &docs); err != nil || len(docs) != 2 {
			t.Fatalf("%d documents, %v", len(docs), err)
		}
		for _, doc := range docs {
			torn := slices.IndexFunc(doc[1:], func(e bson.E) bool { return e.Value != doc[1].Value })
			if torn >= 0 {
				t.Errorf("of %v, %s is %v, and %s is %v", doc[0].Value, doc[1].Key, doc[1].Value, doc[1+torn].Key, doc[1+torn].Value)
			}
		}
		select {
		case err := <-failed:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// TestServerRemovesExpired: a TTL index removes only documents that have expired by the server's
// clock.
func TestServerRemovesExpired(t *testing.T) {
	c := scratch(t)
	if _, err := c.InsertMany(t.Context(), bson.A{
		fields(byID("past"), field("expire", time.Now().Add(-time.Minute))),
		fields(byID("future"), field("expire", time.Now().Add(time.Hour))),
		fields(byID("a number"), field("expire", int64(1))),
		fields(byID("null"), field("expire", nil)),
		byID("nothing"),
	}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: field("expire", 1), Options: options.Index().SetExpireAfterSeconds(0)})
	check.OK(t, err)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for stored(t, c, "past") != nil { // the deadline of the test bounds the wait for the monitor
		<-tick.C
	}
	if n, err := c.CountDocuments(t.Context(), bson.D{}); err != nil || n != 4 {
		t.Errorf("%d documents are left, %v, want 4", n, err)
	}
}
