package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

// TestBusySaysWhenToComeBack: if the queue is full, the error has the time to wait, for sign-ins
// and for the password grant, whether or not the user exists.
func TestBusySaysWhenToComeBack(t *testing.T) {
	passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1, Queue: 1})
	w, f := failingWorld(t, func(o *grants.Options) { o.SignIn.Passwords = passwords })
	giveBack := testworld.TakeHashingSlot(t, passwords)
	looked, bobs := make(chan struct{}), make(chan error, 1)
	f.Begun = func(string) { f.Begun = nil; close(looked) }
	go func() { bobs <- w.signIn(elsewhere, "bob", password) }() // takes the only place in the queue
	<-looked
	var errs []error
	for _, name := range []string{"alice", "nobody"} {
		_, err := w.token("shop", grants.TokenRequest{GrantType: "password", Username: name, Password: password, Remote: here})
		errs = append(errs, w.signIn(here, name, password), err)
	}
	for _, err := range errs { // an attempt that was queued before bob waits in vain
		got := *check.As[*grants.Error](t, err)
		got.Cause = nil
		check.Equal(t, "error", got, grants.Error{
			Code: oautherr.TemporarilyUnavailable, RetryAfter: 3 * time.Second,
			Description: "Too many users are signing in; retry after 3 seconds.",
		})
	}
	giveBack()
	if err := <-bobs; err != nil {
		t.Logf("bob came second: %v", err)
	}
}
