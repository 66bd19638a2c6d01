package grants_test

import (
	"errors"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
)

// TestOldestSessionEnds: a user has no more sessions than are allowed.
func TestOldestSessionEnds(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.SessionsPerUser = 2 })
	var cookies []string
	for _, name := range []string{"alice", "bob", "alice", "alice"} {
		value, _, err := w.service.SignIn(t.Context(), grants.SignIn{Username: name, Password: password, Remote: here})
		check.OK(t, err)
		cookies = append(cookies, value)
		w.clock.Advance(time.Second)
	}
	var signedIn []bool
	for _, value := range cookies {
		_, err := w.service.Session(t.Context(), value)
		if err != nil && !errors.Is(err, grants.ErrNoSession) {
			t.Fatal(err)
		}
		signedIn = append(signedIn, err == nil)
	}
	check.Equal(t, "signed in", signedIn, []bool{false, true, true, true})
}
