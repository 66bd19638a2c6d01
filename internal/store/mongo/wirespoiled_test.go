package mongo

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// soundCommands returns commands as the store sends them.
func soundCommands() map[string]bson.D {
	remove := aWrite("me", 7, 1)
	remove.Remove = syncer.Removal{Frames: []ratelimit.FrameCount{{Name: 60, Count: 2}}, Writers: []syncer.WriterSeq{{Writer: "x", Seq: 1}}}
	op := func(user string, w *syncer.Write) bson.D {
		return bson.D{
			{Key: "q", Value: counterFilter(ratelimit.CounterID{ClientID: "shop", Username: user}, w)},
			{Key: "u", Value: counterUpdate(w)},
			{Key: "upsert", Value: true},
		}
	}
	return map[string]bson.D{
		"update": {
			{Key: "update", Value: "ratelimits"},
			{Key: "ordered", Value: false},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
			{Key: "comment", Value: "oauth-server: write counters"},
			{Key: "updates", Value: bson.A{op("a", remove), op("b", onto(nil, aWrite("me", 7, 1), true))}},
		},
		"find": {
			{Key: "find", Value: "ratelimits"},
			{Key: "filter", Value: bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{idOf("a"), idOf("b")}}}}}},
			{Key: "readConcern", Value: bson.D{{Key: "level", Value: "majority"}}},
			{Key: "comment", Value: "oauth-server: read counters"},
		},
		"delete": {
			{Key: "delete", Value: "ratelimits"},
			{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
			{Key: "comment", Value: "oauth-server: erase counters"},
			{Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: countersOf("shop", new("a"))}, {Key: "limit", Value: 0}}}},
		},
	}
}

// spoiledCommand is a valid command, a change that makes it invalid, and the problem that the check
// then finds.
type spoiledCommand struct {
	name, command string
	spoil         func(bson.D)
	says          string
}

// fieldAt returns the field of a document at a path of names and indexes.
func fieldAt(doc any, path ...any) (e *bson.E) {
	for _, step := range path {
		if i, isIndex := step.(int); isIndex {
			doc = doc.(bson.A)[i]
			continue
		}
		d := doc.(bson.D)
		e = &d[slices.IndexFunc(d, func(e bson.E) bool { return e.Key == step })]
		doc = e.Value
	}
	return e
}

func set(value any, path ...any) func(bson.D) {
	return func(d bson.D) { fieldAt(d, path...).Value = value }
}

func rename(name string, path ...any) func(bson.D) {
	return func(d bson.D) { fieldAt(d, path...).Key = name }
}

func add(name string, value any, path ...any) func(bson.D) {
	return func(d bson.D) {
		e := fieldAt(d, path...)
		e.Value = append(e.Value.(bson.D), bson.E{Key: name, Value: value})
	}
}

func idOf(user string) bson.D {
	return counterID(ratelimit.CounterID{ClientID: "shop", Username: user})
}

func spoiledUpdates() []spoiledCommand {
	return []spoiledCommand{
		{"ordered", "update", set(true, "ordered"), "ordered is"},
		{"order left to the server", "update", rename("comment2", "ordered"), "ordered is"},
		{"write concern 1", "update", set(1, "writeConcern", "w"), "writeConcern is"},
		{"no write concern", "update", rename("x", "writeConcern"), "writeConcern is"},
		{"no comment", "update", set("", "comment"), "comment is"},
		{"a secondary", "update", rename("$readPreference", "comment"), "comment is"},
		{"no upsert", "update", set(false, "updates", 1, "upsert"), "upsert is"},
		{"many documents", "update", rename("multi", "updates", 1, "upsert"), "many documents"},
		{"without validation", "update", rename("bypassDocumentValidation", "ordered"), "bypassDocumentValidation"},
		{"out of order", "update", set(idOf("c"), "updates", 0, "q", "_id"), "followed by"},
		{"an _id twice", "update", set(idOf("b"), "updates", 0, "q", "_id"), "followed by"},
		{"an _id in disorder", "update", rename("user", "updates", 0, "q", "_id", "username"), "an _id of"},
		{"no operation", "update", set(bson.A{}, "updates"), "0 operations"},
		{"an empty filter", "update", set(bson.D{}, "updates", 1, "q"), "a filter"},
		{"the _id alone", "update", set(byID(idOf("b")), "updates", 1, "q"), "a filter"},
		{"without etag", "update", rename("x", "updates", 1, "q", "etag"), "versioned filter"},
		{"without frame", "update", rename("x", "updates", 0, "q", "frame"), "unversioned filter"},
		{"without sequence", "update", rename("x", "updates", 0, "q", "writers.me"), "unversioned filter"},
		{"without pruned", "update", rename("x", "updates", 0, "q", "pruned"), "unversioned filter"},
		{"another sequence", "update", set(int64(8), "updates", 0, "u", "$max", "writers.me"), "other values"},
		{"lowers its sequence", "update", rename("$set", "updates", 0, "u", "$max"), "raises no expire"},
		{"another frame", "update", set(int64(8), "updates", 0, "u", "$set", "frame"), "other values"},
		{"an unconditional removal", "update", add("writers.y", "", "updates", 0, "u", "$unset"), "on condition of"},
		{"a removal that is not done", "update", add("writers.y", int64(1), "updates", 0, "q"), "on condition of"},
		{"counts what it removes", "update", add("requestCounters.60", int64(1), "updates", 0, "u", "$inc"), "two operators on"},
		{"removes its own sequence", "update", rename("writers.me", "updates", 0, "u", "$unset", "writers.x"), "two operators on"},
		{"rewrites unversioned", "update", add("requestCounters", bson.D{}, "updates", 0, "u", "$set"), "$set of"},
		{"sets a count", "update", add("requestCounters.120", int64(1), "updates", 1, "u", "$set"), "$set of"},
		{"lowers expire", "update", rename("$set", "updates", 1, "u", "$max"), "raises no expire"},
		{"an int32", "update", set(int32(1), "updates", 1, "u", "$inc", "version"), "no 64-bit number"},
		{"no version", "update", rename("requestCounters.9", "updates", 1, "u", "$inc", "version"), "$inc.version is"},
		{"a path of two fields", "update", rename("writers.a.b", "updates", 0, "u", "$max", "writers.me"), "$max of"},
	}
}

func spoiledReadsAndDeletes() []spoiledCommand {
	return []spoiledCommand{
		{"read concern local", "find", set("local", "readConcern", "level"), "readConcern is"},
		{"a secondary", "find", func(d bson.D) {
			*fieldAt(d, "comment") = bson.E{Key: "$readPreference", Value: bson.D{{Key: "mode", Value: "nearest"}}}
		}, "read preference"},
		{"everything", "find", set(bson.D{}, "filter"), "is no document"},
		{"a condition more", "find", add("x", 1, "filter"), "a field x"},
		{"no _id", "find", set(bson.A{}, "filter", "_id", "$in"), "0 _ids"},
		{"out of order", "find", set(bson.A{idOf("b"), idOf("a")}, "filter", "_id", "$in"), "followed by"},
		{"a limit", "find", rename("limit", "comment"), "a field limit"},

		{"all counters", "delete", set(bson.D{}, "deletes", 0, "q"), "is no document"},
		{"open above", "delete", rename("$gt", "deletes", 0, "q", "_id", "$lte"), "a range"},
		{"of two clients", "delete", set("shop2", "deletes", 0, "q", "_id", "$lte", "clientId"), "a range"},
		{"another command", "delete", rename("drop", "delete"), "a command drop"},
	}
}

// TestWireCheck: the check of the commands finds the problems that it is meant to find.
func TestWireCheck(t *testing.T) {
	for _, test := range slices.Concat(spoiledUpdates(), spoiledReadsAndDeletes()) {
		t.Run(test.command+"/"+test.name, func(t *testing.T) {
			doc := soundCommands()[test.command]
			check := func() []string {
				raw, err := bson.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				return checkCommand(raw).problems
			}
			if problems := check(); len(problems) > 0 {
				t.Fatalf("sound, but: %q", problems)
			}
			test.spoil(doc)
			if problems := check(); !strings.Contains(strings.Join(problems, "\n"), test.says) {
				t.Errorf("found %q, want %q", problems, test.says)
			}
		})
	}
}
