package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
)

// event returns the one of that minute.
func event(minute int) clientcfg.Event {
	return clientcfg.Event{
		ID: fmt.Sprint("id ", minute), At: Epoch.Add(time.Duration(minute) * time.Minute).UTC(), Action: "update",
		Actor:  clientcfg.Actor{ClientID: "ops", Username: "älice", Address: "192.0.2.1", Store: "me@here"},
		Target: clientcfg.ClientTarget(fmt.Sprint("client-", minute%3)), Reason: "ticket", Instance: "i-1",
		Before: json.RawMessage("null"), After: json.RawMessage(`{"client_name":"Näme"}`), Open: true,
	}
}

func testEvents(t *testing.T, target Target) {
	t.Helper()
	t.Run("events", func(t *testing.T) { addAndEndEvents(t, target) })
	for i, spoil := range target.SpoilEvent {
		t.Run(fmt.Sprint("an event that cannot be read ", i), func(t *testing.T) { unreadableEvent(t, target.fresh(t), spoil) })
	}
}

// unreadableEvent spoils one: the others are found, that one is where it was, and what is no event is
// passed over.
func unreadableEvent(t *testing.T, b Backend, spoil func(t *testing.T, b Backend, key string)) {
	t.Helper()
	for i := range 4 {
		succeed(t, "add", b.AddEvent(t.Context(), event(i)))
	}
	spoil(t, b, eventKey(2))
	list, err := b.Events(t.Context(), clientcfg.EventQuery{})
	succeed(t, "events", err)
	equal(t, "events", 4, len(list))
	for i, e := range list {
		want := event(3 - i)
		equal(t, "key", want.Key(), e.Key())
		if want.Key() == eventKey(2) {
			failWith(t, "that event", clientcfg.ErrUnreadableEvent, e.Err)
		} else {
			equal(t, "an event", want, e)
		}
	}
	list, err = b.Events(t.Context(), clientcfg.EventQuery{Before: list[1].Key()})
	succeed(t, "events", err)
	equal(t, "the page after it", []clientcfg.Event{event(1), event(0)}, list)
	_, err = b.SweepEvents(t.Context(), event(3).At)
	succeed(t, "sweep", err)
	list, err = b.Events(t.Context(), clientcfg.EventQuery{})
	succeed(t, "events", err)
	equal(t, "left", []clientcfg.Event{event(3)}, list)
}

func addAndEndEvents(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	minutes := func(q clientcfg.EventQuery) (out []string) {
		t.Helper()
		events, err := b.Events(ctx, q)
		succeed(t, "events", err)
		for i := range events {
			out = append(out, events[i].ID)
		}
		return out
	}
	equal(t, "events of an empty store", []string(nil), minutes(clientcfg.EventQuery{}))
	succeed(t, "end what is not there", b.EndEvent(ctx, "00", true))
	n, err := b.SweepEvents(ctx, Epoch)
	succeed(t, "sweep an empty store", err)
	equal(t, "swept", 0, n)
	for i := range 6 {
		succeed(t, "add", b.AddEvent(ctx, event(i)))
	}
	for _, tt := range []struct {
		name  string
		query clientcfg.EventQuery
		want  []string
	}{
		{"all", clientcfg.EventQuery{}, []string{"id 5", "id 4", "id 3", "id 2", "id 1", "id 0"}},
		{"the newest", clientcfg.EventQuery{Limit: 2}, []string{"id 5", "id 4"}},
		{"the page after", clientcfg.EventQuery{Limit: 2, Before: eventKey(4)}, []string{"id 3", "id 2"}},
		{"before the first", clientcfg.EventQuery{Before: eventKey(0)}, nil},
		{"before a time", clientcfg.EventQuery{Before: clientcfg.EventsBefore(event(1).At)}, []string{"id 0"}},
		{"before what is yet to come", clientcfg.EventQuery{Before: eventKey(9), Limit: 1}, []string{"id 5"}},
		{"of one target", clientcfg.EventQuery{Target: "clients/client-1"}, []string{"id 4", "id 1"}},
		{"of one target, limited", clientcfg.EventQuery{Target: "clients/client-1", Limit: 1, Before: eventKey(4)}, []string{"id 1"}},
		{"of an unknown target", clientcfg.EventQuery{Target: "clients/client"}, nil},
	} {
		equal(t, tt.name, tt.want, minutes(tt.query))
	}
	succeed(t, "close", b.EndEvent(ctx, eventKey(4), true))
	succeed(t, "remove", b.EndEvent(ctx, eventKey(5), false))
	succeed(t, "remove again", b.EndEvent(ctx, eventKey(5), false))
	got, err := b.Events(ctx, clientcfg.EventQuery{Limit: 2})
	succeed(t, "events", err)
	closed := event(4)
	closed.Open = false
	equal(t, "one that is closed, one that is open", []clientcfg.Event{closed, event(3)}, got)

	n, err = b.SweepEvents(ctx, event(2).At)
	succeed(t, "sweep", err)
	equal(t, "swept", 2, n)
	equal(t, "left", []string{"id 4", "id 3", "id 2"}, minutes(clientcfg.EventQuery{}))
}

func eventKey(minute int) string {
	e := event(minute)
	return e.Key()
}
