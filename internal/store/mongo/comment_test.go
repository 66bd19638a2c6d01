package mongo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// diary records the comment of every command that reads or writes data.
type diary struct {
	mu       sync.Mutex
	comments map[string][]string // by command
}

func (d *diary) monitor() *event.CommandMonitor {
	d.comments = map[string][]string{}
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if slices.Contains([]string{"ping", "hello", "isMaster", "endSessions"}, e.CommandName) {
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		comment, _ := e.Command.Lookup("comment").StringValueOK()
		d.comments[e.CommandName] = append(d.comments[e.CommandName], comment)
	}}
}

func TestCommandsNameTheirCause(t *testing.T) {
	uri, database, _ := strings.Cut(location(t), " ")
	var d diary
	client, err := mongo.Connect(clientOptions(uri).SetMonitor(d.monitor()))
	check.OK(t, err)
	s := newStore(client, database)
	t.Cleanup(func() { _ = s.Close() })
	check.OK(t, exercise(t.Context(), s))
	for command, comments := range d.comments {
		for _, comment := range comments {
			if !strings.HasPrefix(comment, "oauth-server: ") || len(comment) == len("oauth-server: ") {
				t.Errorf("%s has the comment %q", command, comment)
			}
		}
	}
	for _, command := range []string{"find", "insert", "update", "delete"} {
		if len(d.comments[command]) == 0 {
			t.Errorf("no %s was sent", command)
		}
	}
	if !slices.Contains(d.comments["update"], "oauth-server: write counters") {
		t.Errorf("updates have the comments %q", d.comments["update"])
	}
}

// exercise calls every method that reads or writes documents.
func exercise(ctx context.Context, s *Store) error {
	things, id := store.Table{Name: "things"}, exchange.CounterID{ClientID: "shop"}
	_, exchanged := s.Exchange(ctx, []exchange.Item{{ID: id, Write: aWrite("a", 1, 1), Read: true}})
	_, counters := s.CountersOf(ctx, "shop", nil, 1)
	_, verified := s.VerifyCounters(ctx)
	err := errors.Join(exchanged, counters, verified, s.EraseCounters(ctx, "shop", nil),
		s.PutAll(ctx, things, []store.Record{{Key: "a", Version: 1, Value: []byte("{}")}}), s.Delete(ctx, things, nil, "a"),
		s.DeleteAll(ctx, things, "a"), s.Get(ctx, things, func(store.Record) error { return nil }, "a"),
		s.History(ctx, 0, func(store.Entry) error { return nil }), s.Trim(ctx, 1))
	_, put := s.Put(ctx, things, thing("b", "{}"), store.Seen{})
	_, appended := s.Append(ctx, entry(1), writeOf(thing("c", "{}")))
	_, _, followed := s.Trail(ctx, store.Mark{}, 10)
	listed := s.List(ctx, things, store.Query{}, func(store.Record) error { return nil })
	return errors.Join(err, put, appended, followed, listed)
}
