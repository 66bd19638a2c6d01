package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/mongo/mongotest"
)

func entry(number int64) store.Entry {
	return store.Entry{Number: number, At: time.UnixMilli(1_700_000_000_000), Value: fmt.Appendf(nil, `{"n":%d}`, number)}
}

func writeOf(r store.Record) store.Write { return store.Write{Table: things, Record: r} }

func deletion(key string) store.Write {
	return store.Write{Table: things, Record: store.Record{Key: key}, Delete: true}
}

func appendThing(t *testing.T, s *Store, number int64, r store.Record) store.Mark {
	t.Helper()
	mark, err := s.Append(t.Context(), entry(number), writeOf(r))
	check.OK(t, err)
	check.Equal(t, "number", mark.Number, number)
	return mark
}

// pendingOf returns how many entries have writes that are not applied.
func pendingOf(t *testing.T, s *Store) int64 {
	t.Helper()
	n, err := s.trail.CountDocuments(t.Context(), bson.D{{Key: "writes", Value: bson.D{{Key: "$exists", Value: true}}}})
	check.OK(t, err)
	return n
}

// dies has a writer append an entry, and die before it can apply the writes.
func dies(t *testing.T, s *Store, proxy *mongotest.Proxy, f mongotest.Fault, e store.Entry, writes ...store.Write) {
	t.Helper()
	proxy.Decide(func(command string) mongotest.Fault {
		if command == "update" {
			return f
		}
		return mongotest.Pass
	})
	if _, err := s.Append(t.Context(), e, writes...); err == nil || errors.Is(err, store.ErrConflict) {
		t.Fatalf("append: %v", err)
	}
	proxy.Decide(nil)
}

// TestWriterDies: an entry that is stored takes effect, whatever becomes of its writer.
func TestWriterDies(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	appendThing(t, direct, 1, thing("gone", `{"n":1}`))
	expires := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	r := store.Record{Key: "a", Value: []byte(`{"n":2}`), Owner: "ada", Expires: expires}
	dies(t, s, proxy, mongotest.LoseRequest, entry(2), writeOf(r), deletion("gone"))
	check.Equal(t, "before", value(t, direct, "a"), "")
	_, newest, err := direct.Trail(t.Context(), store.Mark{}, 1) // which does not even return the entry
	check.OK(t, err)
	check.Equal(t, "newest", newest.Number, 2)
	got := get(t, direct, "a")
	if got == nil || got.Owner != "ada" || !got.Expires.Equal(expires) || got.Version != 2 || got.Nonce != newest.Nonce {
		t.Errorf("applied: %+v", got)
	}
	check.Equal(t, "deleted", value(t, direct, "gone"), "")

	dies(t, s, proxy, mongotest.LoseRequest, entry(3), writeOf(thing("b", `{"n":3}`)))
	appendThing(t, direct, 4, thing("c", `{"n":4}`))
	check.Equal(t, "applied by the next writer", value(t, direct, "b"), `{"n":3}`)
	check.Equal(t, "pending", pendingOf(t, direct), 0)
}

// TestTrailReplaced: a trail that was dropped or restored from another moment is noticed.
func TestTrailReplaced(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	for n := range int64(3) {
		appendThing(t, s, n+1, thing("a", `{}`))
	}
	mark := appendThing(t, s, 4, thing("a", `{}`))
	_, err := s.trail.DeleteOne(t.Context(), byID(4))
	check.OK(t, err)
	_, newest, err := s.Trail(t.Context(), mark, 10)
	if !errors.Is(err, store.ErrMarkLost) || newest.Number != 3 {
		t.Errorf("shorter: %v, %v", newest, err)
	}
	_, err = s.Append(t.Context(), entry(4), writeOf(thing("a", `{}`)))
	if err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), `"a" of the collection things`) {
		t.Errorf("the record is of an entry that is not there: %v", err)
	}
	_, err = s.Append(t.Context(), entry(4), writeOf(thing("b", `{}`)))
	check.OK(t, err)
	if _, _, err = s.Trail(t.Context(), mark, 10); !errors.Is(err, store.ErrMarkLost) {
		t.Errorf("another entry of that number: %v", err)
	}
	_, err = s.trail.DeleteOne(t.Context(), byID(2))
	check.OK(t, err)
	if _, _, err = s.Trail(t.Context(), store.Mark{}, 10); !errors.Is(err, store.ErrMarkLost) {
		t.Errorf("a gap: %v", err)
	}
}

// TestTrailOfLostDatabase: an instance does not treat a database that lost its data as one without any.
func TestTrailOfLostDatabase(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	mark := appendThing(t, s, 1, thing("a", `{}`))
	check.OK(t, s.db.Drop(t.Context()))
	if _, _, err := s.Trail(t.Context(), mark, 10); err == nil || errors.Is(err, store.ErrMarkLost) || !strings.Contains(err.Error(), "lost") {
		t.Errorf("got %v", err)
	}
}

// TestTrailIdle: looking for news takes one command.
func TestTrailIdle(t *testing.T) {
	t.Parallel()
	uri, database, _ := strings.Cut(location(t), " ")
	var mu sync.Mutex
	commands := map[string]int{}
	client, err := mongo.Connect(clientOptions(uri).SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		mu.Lock()
		defer mu.Unlock()
		commands[e.CommandName]++
	}}))
	check.OK(t, err)
	s := newStore(client, database)
	t.Cleanup(func() { _ = s.Close() })
	mark := appendThing(t, s, 1, thing("a", `{}`))
	clear(commands)
	entries, newest, err := s.Trail(t.Context(), mark, 10)
	check.OK(t, err)
	if len(entries) > 0 || newest != mark || len(commands) != 1 || commands["find"] != 1 {
		t.Errorf("%v, %v, %v", entries, newest, commands)
	}
}
