package grants_test

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// takeOnlyTurn holds the only hashing slot until giveBack is called.
func takeOnlyTurn(t *testing.T, passwords *secret.Passwords) (giveBack func()) {
	t.Helper()
	taken, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := passwords.RejectAttempt(t.Context(), secret.Attempt{
			Name: "the one who has it", Source: "nowhere",
			Still: func() error { close(taken); <-release; return errDown },
		})
		check.ErrorIs(t, err, errDown)
	}()
	<-taken
	return sync.OnceFunc(func() { close(release); <-ended })
}

// TestOneAccountDelaysNoOther: while one account signs in over and over with its correct password,
// another user is served before most of those attempts, from another address and from the same one.
func TestOneAccountDelaysNoOther(t *testing.T) {
	for name, from := range map[string]netip.Addr{"from elsewhere": elsewhere, "from the same address": here} {
		t.Run(name, func(t *testing.T) {
			const crowd = 20
			passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1, MaxWait: time.Minute})
			w, f := failingWorld(t, func(o *grants.Options) { o.Passwords = passwords })
			giveBack := takeOnlyTurn(t, passwords)
			defer giveBack()
			var mu sync.Mutex
			var order []string
			arrived := make(chan struct{}, crowd+1)
			f.begun = func(operation string) {
				if operation == "User" {
					arrived <- struct{}{}
				}
			}
			var people sync.WaitGroup
			signIn := func(name string, from netip.Addr) {
				people.Go(func() {
					err := w.signIn(from, name, password)
					mu.Lock()
					defer mu.Unlock()
					order = append(order, name)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			for range crowd {
				signIn("alice", here)
			}
			for range crowd {
				<-arrived
			}
			signIn("bob", from)
			<-arrived
			giveBack()
			people.Wait()
			if before := slices.Index(order, "bob"); before > crowd/2 {
				t.Errorf("%d of alice's were done before bob's only one", before)
			}
		})
	}
}

// TestBusySaysWhenToComeBack: if the queue is full, the error has the time to wait, for sign-ins
// and for the password grant, whether or not the user exists.
func TestBusySaysWhenToComeBack(t *testing.T) {
	passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1, Queue: 1})
	w, f := failingWorld(t, func(o *grants.Options) { o.Passwords = passwords })
	giveBack := takeOnlyTurn(t, passwords)
	looked, bobs := make(chan struct{}), make(chan error, 1)
	f.begun = func(string) { f.begun = nil; close(looked) }
	go func() { bobs <- w.signIn(elsewhere, "bob", password) }() // takes the only place in the queue
	<-looked
	var errs []error
	for _, name := range []string{"alice", "nobody"} {
		_, err := w.token("shop", grants.TokenRequest{GrantType: "password", Username: name, Password: password, Remote: here})
		errs = append(errs, w.signIn(here, name, password), err)
	}
	for _, err := range errs { // an attempt that was queued before bob waits in vain
		got := *as[*grants.Error](t, err)
		got.Cause = nil
		check.Equal(t, "error", got, grants.Error{
			Code: oautherr.TemporarilyUnavailable, RetryAfter: 3 * time.Second,
			Description: "Too many people are signing in at the moment; retry after 3 seconds.",
		})
	}
	giveBack()
	if err := <-bobs; err != nil {
		t.Logf("bob came second: %v", err)
	}
}

// TestSignInsOfOneUserAreLimited: sign-ins are limited by address and username, on the page and in
// the password grant. Over the limit nothing is hashed.
func TestSignInsOfOneUserAreLimited(t *testing.T) {
	w := newWorld(t, func(o *grants.Options) { o.SignIns = ratelimit.NewLimit("sign-ins", 3, time.Minute) })
	asToken := func() error {
		_, err := w.token("shop", grants.TokenRequest{GrantType: "password", Username: "alice", Password: password, Remote: here})
		return err
	}
	check.OK(t, w.signIn(here, "alice", password))
	check.ErrorIs(t, w.signIn(here, "alice", "wrong"), grants.ErrSignIn)
	check.OK(t, asToken())
	check.OK(t, w.signIn(here, "alice", password))
	var wait time.Duration
	for name, err := range map[string]error{
		"right": w.signIn(here, "alice", password), "wrong": w.signIn(here, "alice", "x"), "token": asToken(),
	} {
		limited := as[*oautherr.LimitedError](t, err)
		wait = limited.RetryAfter
		want := fmt.Sprintf("Too many sign-ins with this username from this address; retry after %d seconds.", wait/time.Second)
		check.Equal(t, name, limited.Description(), want)
	}
	check.OK(t, w.signIn(elsewhere, "alice", password))
	check.OK(t, w.signIn(here, "bob", password))
	w.clock.Advance(wait)
	check.OK(t, w.signIn(here, "alice", password))
}
