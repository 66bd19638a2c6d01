package grants_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

var (
	here      = netip.MustParseAddr("192.0.2.1")
	elsewhere = netip.MustParseAddr("198.51.100.7")
)

// strict allows 5 failures a minute from an address, 3 of them with the same name.
func strict(o *grants.Options) {
	l := grants.FailureLimits{
		PerAddress: ratelimit.NewLimit("per-address", 5, time.Minute),
		PerName:    ratelimit.NewLimit("per-name", 3, time.Minute),
	}
	o.ClientFailures, o.SignInFailures = l, l
}

// attempt requests a token as a client with that secret.
func (w *world) attempt(from netip.Addr, id, clientSecret string) error {
	_, err := w.service.Token(w.tb.Context(), grants.TokenRequest{
		Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: id, Secret: clientSecret}, Remote: from, GrantType: "client_credentials",
	})
	return err
}

func (w *world) signIn(from netip.Addr, name, pw string) error {
	_, _, err := w.service.SignIn(w.tb.Context(), grants.SignIn{Username: name, Password: pw, Remote: from})
	return err
}

// wantTooMany checks the error for too many failures.
func wantTooMany(t *testing.T, err error) (retryAfter time.Duration) {
	t.Helper()
	limited := as[*oautherr.LimitedError](t, err)
	check.Equal(t, "RateLimit", limited.RateLimit, oautherr.RateLimit{})
	check.Equal(t, "violated", limited.Violated, nil)
	check.Equal(t, "over a quota", limited.QuotaExceeded, false)
	check.Equal(t, "description", limited.Description(), fmt.Sprintf("Too many failed attempts from this address; retry after %d seconds.", int(limited.RetryAfter/time.Second)))
	return limited.RetryAfter
}

func TestFailedClientsAreLimited(t *testing.T) {
	w := newWorld(t, strict)
	for range 3 {
		wantCode(t, oautherr.InvalidClient, w.attempt(here, "shop", "x"))
	}
	retryAfter := wantTooMany(t, w.attempt(here, "shop", "x"))
	if err := w.attempt(elsewhere, "shop", secretOf("shop")); err != nil {
		t.Fatalf("locked out by a stranger: %v", err)
	}
	wantCode(t, oautherr.InvalidClient, w.attempt(elsewhere, "shop", "x"))
	if err := w.attempt(here, "shop", secretOf("shop")); err != nil {
		t.Fatalf("locked out behind the same gateway: %v", err)
	}

	wantCode(t, oautherr.InvalidClient, w.attempt(here, "other", "x"))
	wantTooMany(t, w.attempt(here, "other", "x"))
	wantTooMany(t, w.attempt(here, "nobody", "x"))

	_, err := w.service.Introspect(t.Context(), grants.TokenQuery{Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: "shop", Secret: "x"}, Remote: here, Token: "x"})
	wantTooMany(t, err)
	err = w.service.Revoke(t.Context(), grants.TokenQuery{Credentials: grants.Credentials{Method: grants.AuthPost, ClientID: "shop", Secret: "x"}, Remote: here, Token: "x"})
	wantTooMany(t, err)

	w.clock.Advance(retryAfter)
	wantCode(t, oautherr.InvalidClient, w.attempt(here, "shop", "x"))
}

func TestFailedSignInsAreLimited(t *testing.T) {
	w := newWorld(t, strict)
	check.OK(t, w.signIn(here, "alice", password))
	for range 3 {
		check.ErrorIs(t, w.signIn(here, "alice", "x"), grants.ErrSignIn)
	}
	retryAfter := wantTooMany(t, w.signIn(here, "alice", "x"))
	wantTooMany(t, w.signIn(here, "alice", password))
	_, err := w.service.Token(t.Context(), grants.TokenRequest{
		Credentials: w.credentials("shop"), Remote: here, GrantType: "password", Username: "alice", Password: "x",
	})
	wantTooMany(t, err)
	if err := w.signIn(elsewhere, "alice", password); err != nil {
		t.Fatalf("locked out by a stranger: %v", err)
	}
	if err := w.signIn(here, "bob", password); err != nil {
		t.Fatalf("locked out by another user of the same address: %v", err)
	}

	for range 2 {
		check.ErrorIs(t, w.signIn(here, "bob", "x"), grants.ErrSignIn)
	}
	wantTooMany(t, w.signIn(here, "bob", password))
	wantTooMany(t, w.signIn(here, "nobody", "x"))
	check.OK(t, w.signIn(elsewhere, "bob", password))

	w.clock.Advance(retryAfter - time.Second)
	requireTooManySoon(t, w.signIn(here, "alice", password))
	w.clock.Advance(time.Second)
	check.OK(t, w.signIn(here, "alice", password))
}

// requireTooManySoon is like wantTooMany, for a wait of a second.
func requireTooManySoon(t *testing.T, err error) {
	t.Helper()
	limited := as[*oautherr.LimitedError](t, err)
	check.Equal(t, "Retry-After", int(limited.RetryAfter/time.Second), 1)
}

// TestSuccessCostsNothing: only failures count.
func TestSuccessCostsNothing(t *testing.T) {
	w := newWorld(t, strict)
	for range 20 {
		check.OK(t, w.attempt(here, "shop", secretOf("shop")))
	}
	for range 6 {
		check.OK(t, w.signIn(here, "alice", password))
	}
	check.ErrorIs(t, w.signIn(here, "alice", "x"), grants.ErrSignIn)
	wantCode(t, oautherr.InvalidClient, w.attempt(here, "shop", "x"))
}

func TestFailuresCountBySource(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then string
		same        bool
	}{
		"the same address":        {"192.0.2.1", "192.0.2.1", true},
		"another address":         {"192.0.2.1", "192.0.2.2", false},
		"IPv4 in IPv6":            {"192.0.2.1", "::ffff:192.0.2.1", true},
		"the same /64":            {"2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true},
		"another /64":             {"2001:db8:0:1::1", "2001:db8:0:2::1", false},
		"the same, with its zone": {"fe80::1%eth0", "fe80::1%eth1", true},
		"IPv6 loopback":           {"::1", "127.0.0.1", false},
		"unknown addresses":       {"", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strict)
			first, _ := netip.ParseAddr(tc.first)
			then, _ := netip.ParseAddr(tc.then)
			for range 3 {
				wantCode(t, oautherr.InvalidClient, w.attempt(first, "shop", "x"))
			}
			err := w.attempt(then, "shop", "x")
			if tc.same {
				wantTooMany(t, err)
			} else {
				wantCode(t, oautherr.InvalidClient, err)
			}
			check.OK(t, w.attempt(then, "shop", secretOf("shop")))
		})
	}
}

// TestGuessingAtOnceGainsNothing: guesses admitted at the same time are checked again when they get
// their turn to be hashed.
func TestGuessingAtOnceGainsNothing(t *testing.T) {
	w := newWorld(t, strict, func(o *grants.Options) {
		o.Passwords = secret.NewPasswords(secret.PasswordOptions{Concurrency: 1, MaxWait: time.Minute})
	})
	_, failures := atOnce(30, func() error { return w.signIn(here, "alice", "x") })
	wrong := 0
	for _, err := range failures {
		if err == grants.ErrSignIn { //nolint:errorlint // exactly this
			wrong++
		} else {
			wantTooMany(t, err)
		}
	}
	check.Equal(t, "guesses that were hashed", wrong, 3)
}

// TestWaitingGuessesAreAskedAgain: a queued attempt is not hashed if others have reached the limit
// of failures in between.
func TestWaitingGuessesAreAskedAgain(t *testing.T) {
	w, f := failingWorld(t, strict)
	f.begun = func(operation string) {
		check.Equal(t, "operation", operation, "User")
		f.begun = nil
		for range 3 {
			check.ErrorIs(t, w.signIn(here, "alice", "x"), grants.ErrSignIn)
		}
	}
	wantTooMany(t, w.signIn(here, "alice", password))
}

// TestSignInsLeaveTokensAlone: while many sign-ins are queued, other clients get tokens without
// waiting.
func TestSignInsLeaveTokensAlone(t *testing.T) {
	passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1, MaxWait: time.Minute})
	w := newWorld(t, func(o *grants.Options) { o.Passwords = passwords })
	// The only hashing slot is taken until all other requests are done.
	taken, release := make(chan struct{}), make(chan struct{})
	var crowd sync.WaitGroup
	crowd.Go(func() {
		err := passwords.RejectAttempt(t.Context(), secret.Attempt{Still: func() error { close(taken); <-release; return errDown }})
		check.ErrorIs(t, err, errDown)
	})
	<-taken
	for i := range 20 {
		crowd.Go(func() {
			if err := w.signIn(here, "alice", password); err != nil {
				t.Errorf("sign-in %d: %v", i, err)
			}
		})
	}
	for range 50 {
		check.OK(t, w.attempt(elsewhere, "shop", secretOf("shop")))
	}
	close(release)
	crowd.Wait()
}
