package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

func TestSessionEnds(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"when it expires": func(w *world) { w.clock.Advance(12 * time.Hour) },
		"with the user":   func(w *world) { check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil)) },
		"with the user, though a namesake follows": func(w *world) {
			check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil))
			check.OK(t, w.store.CreateUser(t.Context(), accounts.User{Name: "alice", CreatedAt: start, Stamp: secret.NewStamp()}, clientcfg.Event{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cookie, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
			check.OK(t, err)
			w.clock.Advance(time.Hour)
			_, err = w.service.Session(t.Context(), cookie)
			check.OK(t, err)
			end(w)
			_, err = w.service.Session(t.Context(), cookie)
			check.ErrorIs(t, err, accounts.ErrNoSession)
		})
	}
	for _, cookie := range []string{"", "x"} {
		_, err := newWorld(t).service.Session(t.Context(), cookie)
		check.ErrorIs(t, err, accounts.ErrNoSession)
	}
}
