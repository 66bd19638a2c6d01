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

func numbersOf(entries []store.Entry) (s string) {
	for _, e := range entries {
		s += fmt.Sprint(e.Number, " ")
	}
	return s
}

// pendingOf returns how many entries have writes that are not applied.
func pendingOf(t *testing.T, s *Store) int64 {
	t.Helper()
	n, err := s.trail.CountDocuments(t.Context(), bson.D{{Key: "writes", Value: bson.D{{Key: "$exists", Value: true}}}})
	check.OK(t, err)
	return n
}

// TestAppendLostReply: each command of Append in turn loses its reply, and the entry is there once.
func TestAppendLostReply(t *testing.T) {
	t.Parallel()
	for _, lost := range []struct {
		command string
		nth     int
	}{{"insert", 1}, {"update", 1}, {"update", 2}} {
		s, direct, proxy := throughProxy(t)
		n := 0
		proxy.Decide(func(command string) mongotest.Fault {
			if command == lost.command {
				n++
			}
			if n == lost.nth && command == lost.command {
				return mongotest.LoseReply
			}
			return mongotest.Pass
		})
		mark := appendThing(t, s, 1, thing("a", `{"n":1}`))
		proxy.Decide(nil)
		entries, newest, err := direct.Trail(t.Context(), store.Mark{}, 10)
		check.OK(t, err)
		check.Equal(t, "entries", numbersOf(entries), "1 ")
		check.Equal(t, "mark", newest, mark)
		check.Equal(t, "value", value(t, direct, "a"), `{"n":1}`)
		check.Equal(t, "state", get(t, direct, "a").Seen(), seenOf(mark))
		check.Equal(t, "pending", pendingOf(t, direct), 0)
	}
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

// TestWriterPaused: the writes of an entry arrive long after it was applied by others, and do not undo what
// was written since.
func TestWriterPaused(t *testing.T) {
	t.Parallel()
	s, direct, proxy := throughProxy(t)
	dies(t, s, proxy, mongotest.Delay, entry(1), writeOf(thing("changed", `{"n":1}`)), writeOf(thing("deleted", `{"n":1}`)), deletion("made"))
	_, err := direct.Append(t.Context(), entry(2), writeOf(thing("changed", `{"n":2}`)), deletion("deleted"), writeOf(thing("made", `{"n":2}`)))
	check.OK(t, err)
	n, err := proxy.Deliver()
	check.OK(t, err)
	if n == 0 {
		t.Fatal("nothing was delayed")
	}
	check.Equal(t, "changed", value(t, direct, "changed"), `{"n":2}`)
	check.Equal(t, "deleted", value(t, direct, "deleted"), "")
	check.Equal(t, "made", value(t, direct, "made"), `{"n":2}`)
	check.OK(t, direct.List(t.Context(), things, store.Query{}, func(r store.Record) error {
		check.Equal(t, "version of "+r.Key, r.Version, 2)
		return nil
	}))
	appendThing(t, direct, 3, thing("deleted", `{"n":3}`)) // in the place of the tombstone
	r := get(t, direct, "deleted")
	if string(r.Value) != `{"n":3}` || !r.Expires.IsZero() {
		t.Errorf("made anew: %+v", r)
	}
}

// TestAppendRace: of many writers of one number one succeeds.
func TestAppendRace(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	for number := int64(1); number <= 3; number++ {
		var wg sync.WaitGroup
		won := make(chan store.Mark, 8)
		for i := range cap(won) {
			wg.Go(func() {
				mark, err := s.Append(t.Context(), entry(number), writeOf(thing("a", fmt.Sprintf(`{"i":%d}`, i))))
				if err == nil {
					won <- mark
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		check.Equal(t, "winners", len(won), 1)
		check.Equal(t, "state", get(t, s, "a").Seen(), seenOf(<-won))
	}
	if _, err := s.Append(t.Context(), entry(5)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a gap: %v", err)
	}
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

// TestTrailUnreadable: an entry that was edited by hand is named, and hides no other.
func TestTrailUnreadable(t *testing.T) {
	t.Parallel()
	s := openMigrated(t)
	for n := range int64(3) {
		appendThing(t, s, n+1, thing("a", `{}`))
	}
	for _, set := range []bson.D{
		{{Key: "value", Value: "x"}}, {{Key: "at", Value: "yesterday"}}, {{Key: "nonce", Value: "x"}}, {{Key: "refs", Value: 7}},
	} {
		_, err := s.trail.UpdateOne(t.Context(), byID(2), bson.D{{Key: "$set", Value: set}})
		check.OK(t, err)
		entries, _, err := s.Trail(t.Context(), store.Mark{}, 10)
		check.OK(t, err)
		check.Equal(t, "entries", numbersOf(entries), "1 2 3 ")
		if entries[0].Err != nil || !errors.Is(entries[1].Err, store.ErrUnreadable) || entries[2].Err != nil {
			t.Errorf("%v: %v", set, entries)
		}
		rest, _, err := s.Trail(t.Context(), entries[1].Mark(), 10) // following goes on behind it
		check.OK(t, err)
		check.Equal(t, "rest", numbersOf(rest), "3 ")
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

// seenOf is the state of the records of an entry.
func seenOf(m store.Mark) store.Seen { return store.Seen{Version: m.Number, Nonce: m.Nonce} }
