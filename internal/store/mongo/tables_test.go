package mongo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/mongo/mongotest"
)

var things = store.Table{Name: "things", ByOwner: true}

func thing(key, value string) store.Record { return store.Record{Key: key, Value: []byte(value)} }

// get reads one record; nil if it does not exist.
func get(t *testing.T, s *Store, key string) (found *store.Record) {
	t.Helper()
	err := s.Get(t.Context(), things, func(r store.Record) error {
		r.Value = []byte(string(r.Value))
		found = &r
		return nil
	}, key)
	check.OK(t, err)
	return found
}

func value(t *testing.T, s *Store, key string) string {
	t.Helper()
	r := get(t, s, key)
	if r == nil {
		return ""
	}
	check.OK(t, r.Err)
	return string(r.Value)
}

// put stores a record, in the state seen, and returns the new state.
func put(t *testing.T, s *Store, r store.Record, seen store.Seen) store.Seen {
	t.Helper()
	next, err := s.Put(t.Context(), things, r, seen)
	check.OK(t, err)
	check.Equal(t, "version", next.Version, seen.Version+1)
	return next
}

// TestPutLostRace: a request is lost, and another writer writes before it could be repeated.
func TestPutLostRace(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	seen := put(t, direct, thing("a", `{"n":1}`), store.Seen{})
	proxy.Decide(func(command string) mongotest.Fault {
		if command == "update" {
			put(t, direct, thing("a", `{"n":2}`), seen)
			return mongotest.LoseRequest
		}
		return mongotest.Pass
	})
	if _, err := s.Put(t.Context(), things, thing("a", `{"n":3}`), seen); !errors.Is(err, store.ErrConflict) {
		t.Error(err)
	}
}

// TestPutAllRace: other processes insert older and newer records between an upsert's search and its
// insert. MongoDB reports a duplicate key for both.
func TestPutAllRace(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	r := func(key string, version int64) store.Record {
		return store.Record{Key: key, Value: fmt.Appendf(nil, `{"v":%d}`, version), Version: version}
	}
	proxy.Alter(collision(func() {
		check.OK(t, direct.PutAll(t.Context(), things, []store.Record{r("older", 1), r("newer", 3), r("same", 2)}))
	}))
	check.OK(t, s.PutAll(t.Context(), things, []store.Record{r("older", 2), r("newer", 2), r("same", 2), r("new", 2)}))
	for key, want := range map[string]string{"older": `{"v":2}`, "newer": `{"v":3}`, "same": `{"v":2}`, "new": `{"v":2}`} {
		check.Equal(t, key, value(t, direct, key), want)
	}
}

// collision returns a server on which other processes insert the documents of the next upserts,
// between an upsert's search and its insert. It runs others and then refuses each upsert of the
// command, as MongoDB does if the filter has more than the _id. The stand-in needs this because its
// upserts are atomic.
func collision(others func()) mongotest.Alteration {
	var once sync.Once
	return mongotest.Alteration{Answer: func(command bson.D) (answer bson.D) {
		if command[0].Key != "update" {
			return nil
		}
		var errs bson.A
		for i, u := range mongotest.Get[bson.A](command, "updates") {
			if update, ok := u.(bson.D); ok && mongotest.Get[bool](update, "upsert") && len(mongotest.Get[bson.D](update, "q")) > 1 {
				errs = append(errs, bson.D{{Key: "index", Value: i}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000 duplicate key error"}})
			}
		}
		if len(errs) > 0 {
			once.Do(func() {
				others()
				answer = bson.D{{Key: "n", Value: 0}, {Key: "nModified", Value: 0}, {Key: "writeErrors", Value: errs}, {Key: "ok", Value: 1.0}}
			})
		}
		return answer
	}}
}

// TestOmit: the server leaves out the member of the value.
func TestOmit(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	put(t, s, thing("a", `{"n":1,"long":{"n":2},"s":"x"}`), store.Seen{})
	var values []string
	check.OK(t, s.List(t.Context(), things, store.Query{Omit: "long"}, func(r store.Record) error {
		values = append(values, string(r.Value))
		return r.Err
	}))
	check.Equal(t, "values", values, []string{`{"n":1,"s":"x"}`})
}

func openMigrated(t *testing.T) *Store {
	t.Helper()
	uri, database, _ := strings.Cut(location(t), " ")
	return openAt(t, uri, database)
}

// TestDocument: a record is a document that operators can read.
func TestDocument(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	expires := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	r := store.Record{Key: "a", Value: []byte(`{"name":"Ada","roles":["x"],"n":7}`), Owner: "ada", Expires: expires}
	seen := put(t, s, r, store.Seen{})
	var doc bson.D
	check.OK(t, s.db.Collection("things").FindOne(t.Context(), byID("a")).Decode(&doc))
	slices.SortFunc(doc, func(a, b bson.E) int { return cmp.Compare(a.Key, b.Key) })
	if age := time.Since(mongotest.Get[bson.DateTime](doc, "changed").Time()); age < -time.Minute || age > time.Minute {
		t.Errorf("changed is %s ago", age)
	}
	check.Equal(t, "document", fmt.Sprint(doc), fmt.Sprint(bson.D{
		{Key: "_id", Value: "a"},
		{Key: "changed", Value: mongotest.Get[bson.DateTime](doc, "changed")},
		{Key: "expire", Value: bson.NewDateTimeFromTime(expires)},
		{Key: "nonce", Value: seen.Nonce},
		{Key: "owner", Value: "ada"},
		{Key: "value", Value: bson.D{{Key: "name", Value: "Ada"}, {Key: "roles", Value: bson.A{"x"}}, {Key: "n", Value: int32(7)}}},
		{Key: "version", Value: seen.Version},
	}))
	put(t, s, thing("a", `{}`), seen)
	found := get(t, s, "a")
	if found.Owner != "" || !found.Expires.IsZero() {
		t.Errorf("owner and expiry stay: %+v", found)
	}
}

// TestEditedByHand: values written by a shell are read if they are valid. Otherwise only that
// record is unreadable.
func TestEditedByHand(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	collection := s.db.Collection("things")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		set  bson.D
		want string // empty: unreadable
	}{
		"a double":         {bson.D{{Key: "value.n", Value: 8.0}, {Key: "version", Value: 2.0}}, `{"n":8}`},
		"a date":           {bson.D{{Key: "value.n", Value: at}}, `{"n":"2026-01-02T03:04:05Z"}`},
		"another member":   {bson.D{{Key: "value.m", Value: "x"}}, `{"n":1,"m":"x"}`},
		"an ObjectID":      {bson.D{{Key: "value.n", Value: bson.NewObjectID()}}, ""},
		"bytes":            {bson.D{{Key: "value.n", Value: []byte("x")}}, ""},
		"no document":      {bson.D{{Key: "value", Value: "x"}}, ""},
		"an array":         {bson.D{{Key: "value", Value: bson.A{}}}, ""},
		"a text":           {bson.D{{Key: "version", Value: "2"}}, ""},
		"half a version":   {bson.D{{Key: "version", Value: 1.5}}, ""},
		"half a nonce":     {bson.D{{Key: "nonce", Value: 1.5}}, ""},
		"no nonce":         {bson.D{{Key: "nonce", Value: 0}}, ""},
		"an owner":         {bson.D{{Key: "owner", Value: 7}}, ""},
		"an end":           {bson.D{{Key: "expire", Value: "tomorrow"}}, ""},
		"an unknown field": {bson.D{{Key: "color", Value: "red"}}, `{"n":1}`},
	} {
		put(t, s, thing(name, `{"n":1}`), store.Seen{})
		_, err := collection.UpdateOne(t.Context(), byID(name), bson.D{{Key: "$set", Value: tt.set}})
		check.OK(t, err)
		r := get(t, s, name)
		switch {
		case tt.want == "" && !errors.Is(r.Err, store.ErrUnreadable), tt.want != "" && r.Err != nil:
			t.Errorf("%s: %v", name, r.Err)
		case string(r.Value) != tt.want:
			t.Errorf("%s: %s, want %s", name, r.Value, tt.want)
		}
		check.Equal(t, "key", r.Key, name)
	}
	n := 0
	_, err := collection.InsertMany(t.Context(), []bson.D{{}, byID(7), byID("bare")}) // strays: _ids of no record, and no value
	check.OK(t, err)
	check.OK(t, s.List(t.Context(), things, store.Query{}, func(store.Record) error { n++; return nil }))
	check.Equal(t, "listed", n, 15)
}

// TestListBatches: a list of more than one batch is complete, even if its documents change during
// the list.
func TestListBatches(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	records := make([]store.Record, batch+batch/2)
	for i := range records {
		records[i] = store.Record{Key: fmt.Sprintf("%06d", i), Value: fmt.Appendf(nil, `{"i":%d}`, i), Version: 1}
	}
	check.OK(t, s.PutAll(t.Context(), things, records))
	n := 0
	err := s.List(t.Context(), things, store.Query{}, func(r store.Record) error {
		if want := fmt.Sprintf(`{"i":%d}`, n); string(r.Value) != want {
			return fmt.Errorf("%s, want %s", r.Value, want)
		}
		n++
		return nil
	})
	check.OK(t, err)
	check.Equal(t, "records", n, len(records))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = s.List(ctx, things, store.Query{}, func(store.Record) error { cancel(); return nil })
	check.ErrorIs(t, err, context.Canceled, "cancelled")
}
