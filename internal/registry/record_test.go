package registry

import (
	"context"
	"errors"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/store/embedded"
)

// failing is a store that fails, before or after it has made a change, or cannot record events.
type failing struct {
	*embedded.Store
	before, after, recording, closing error
}

func (s *failing) change(do func() error) error {
	if s.before != nil {
		return s.before
	}
	return errors.Join(do(), s.after)
}

func (s *failing) UpdateClient(ctx context.Context, c clientcfg.Client) error {
	return s.change(func() error { return s.Store.UpdateClient(ctx, c) })
}

func (s *failing) ChangeUser(ctx context.Context, name string, ch grants.UserChange) error {
	return s.change(func() error { return s.Store.ChangeUser(ctx, name, ch) })
}

func (s *failing) AddEvent(ctx context.Context, e clientcfg.Event) error {
	if s.recording != nil {
		return s.recording
	}
	return s.Store.AddEvent(ctx, e)
}

func (s *failing) EndEvent(ctx context.Context, key string, made bool) error {
	if s.closing != nil {
		return s.closing
	}
	return s.Store.EndEvent(ctx, key, made)
}

// TestEventsTellTheTruth: an event that is closed was made, one that is not known to be says so, and what
// was refused leaves none.
func TestEventsTellTheTruth(t *testing.T) {
	down := errors.New("no database")
	for _, tt := range []struct {
		name   string
		store  failing
		failed bool
		made   bool
		events string // whether each is open
	}{
		{"made", failing{}, false, true, "closed"},
		{"refused by the store", failing{before: clientcfg.ErrNotFound}, true, false, ""},
		{"not made, for all that is known", failing{before: down}, true, false, "open"},
		{"made, and the answer was lost", failing{after: down}, true, true, "open"},
		{"made, and the event could not be closed", failing{closing: down}, false, true, "open"},
		{"not recorded", failing{recording: down}, true, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.store.Store = openTestStore(t)
			ctx := t.Context()
			_, _, err := CreateClient(ctx, tt.store.Store, clientcfg.Client{ID: "shop"}, noon)
			check.OK(t, err)
			r := New(Options{Store: &tt.store, Events: &tt.store, By: clientcfg.Actor{ClientID: "ops"}})
			_, err = r.ChangeClient(ctx, "shop", func(c *clientcfg.Client) error { c.Name = "Shop"; return nil })
			check.Equal(t, "failed", err != nil, tt.failed)
			c, err := FindClient(ctx, tt.store.Store, "shop")
			check.OK(t, err)
			check.Equal(t, "made", c.Name == "Shop", tt.made)
			events, err := tt.store.Events(ctx, clientcfg.EventQuery{Target: "clients/shop"})
			check.OK(t, err)
			got := ""
			for _, e := range events {
				got += map[bool]string{true: "open", false: "closed"}[e.Open]
			}
			check.Equal(t, "events", got, tt.events)
		})
	}
}

// A change that others come before is recorded once.
func TestContestedChangeIsRecordedOnce(t *testing.T) {
	store := &contested{Store: openTestStore(t)}
	_, _, err := CreateClient(t.Context(), store, clientcfg.Client{ID: "shop"}, noon)
	check.OK(t, err)
	r := New(Options{Store: store, Events: store})
	_, err = r.ChangeClient(t.Context(), "shop", func(c *clientcfg.Client) error { c.Name = "Shop"; return nil })
	check.OK(t, err)
	events, err := store.Events(t.Context(), clientcfg.EventQuery{})
	check.OK(t, err)
	check.Equal(t, "events", len(events), 1)
}
