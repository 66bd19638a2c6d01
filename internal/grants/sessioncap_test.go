package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
)

// TestOldestSessionEnds: a user has at most the configured number of sessions.
func TestOldestSessionEnds(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.SessionsPerUser = 2 })
	var cookies []string
	for _, name := range []string{"alice", "bob", "alice", "alice"} {
		cookie, _, err := w.service.SignIn(t.Context(), grants.SignIn{Username: name, Password: password, Remote: here})
		check.OK(t, err)
		cookies = append(cookies, cookie)
		w.clock.Advance(time.Second)
	}
	for i, want := range []error{grants.ErrNoSession, nil, nil, nil} {
		_, err := w.service.Session(t.Context(), cookies[i])
		check.ErrorIs(t, err, want)
	}
}
