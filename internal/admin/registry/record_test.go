package registry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store"
)

// failing is a store that fails before or after ending a session, or cannot record events.
type failing struct {
	*testworld.Store
	before, after, recording error
}

func (s *failing) Delete(ctx context.Context, t store.Table, seen *store.Seen, key string) error {
	if s.before != nil {
		return s.before
	}
	return errors.Join(s.Store.Delete(ctx, t, seen, key), s.after)
}

func (s *failing) AddEvent(ctx context.Context, e clientcfg.Event) error {
	if s.recording != nil {
		return s.recording
	}
	return s.Store.AddEvent(ctx, e)
}

// TestEventsTellTheTruth: if a change cannot be written together with its event, the event comes
// first, and another event follows if it is unknown whether the change was made.
func TestEventsTellTheTruth(t *testing.T) {
	down := errors.New("no database")
	for _, tt := range []struct {
		name   string
		store  failing
		events string
	}{
		{"made", failing{}, "made"},
		{"not made, for all that is known", failing{before: down}, "unknown made"},
		{"made, and the answer was lost", failing{after: down}, "unknown made"},
		{"not recorded", failing{recording: down}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.store.Store = openTestStore(t)
			ctx := t.Context()
			addUser(t, tt.store.Store, "ada")
			ada, err := tt.store.User(ctx, "ada")
			check.OK(t, err)
			session := accounts.Session{Key: "s", Username: "ada", UserStamp: ada.Stamp, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
			check.OK(t, tt.store.CreateSession(ctx, session, 1))
			r := New(Options{Store: &tt.store, Events: &tt.store, By: clientcfg.Actor{ClientID: "ops"}, Now: func() time.Time { return noon }})
			_, err = r.EndSessions(ctx, "ada", "")
			check.Equal(t, "failed", err != nil, tt.events != "made")
			events, err := tt.store.Events(ctx, clientcfg.EventQuery{Target: "users/ada"})
			check.OK(t, err)
			var got []string
			for _, e := range events {
				got = append(got, map[bool]string{true: "unknown", false: "made"}[e.Unknown])
			}
			check.Equal(t, "events", strings.Join(got, " "), tt.events)
		})
	}
}
