package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

func entry(number int64) store.Entry {
	return store.Entry{Number: number, At: time.UnixMilli(1_700_000_000_000), Value: fmt.Appendf(nil, `{"n":%d}`, number)}
}

func writeOf(r store.Record) store.Write { return store.Write{Table: things, Record: r} }

func appendThing(t *testing.T, s *Store, number int64, r store.Record) store.Mark {
	t.Helper()
	mark, err := s.Append(t.Context(), entry(number), writeOf(r))
	check.OK(t, err)
	check.Equal(t, "number", mark.Number, number)
	return mark
}

// TestTrailReplaced: the store notices that the trail was dropped, or restored from another moment.
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

// TestTrailIdle: checking for new entries takes one command.
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
