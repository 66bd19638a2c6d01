package grants_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

var (
	here      = netip.MustParseAddr("192.0.2.1")
	elsewhere = netip.MustParseAddr("198.51.100.7")
)

// strict allows 5 failures a minute from an address, 3 of them with the same name.
func strict(o *grants.Options) {
	l := attempts.NewLimits(5, 3, time.Minute)
	o.ClientFailures, o.SignIn.Failures = l, l
}

// attempt requests a token as a client with that secret.
func (w *world) attempt(from netip.Addr, id, clientSecret string) error {
	_, err := w.service.Token(w.tb.Context(), grants.TokenRequest{
		Credentials: grants.Credentials{Method: grants.AuthBasic, ClientID: id, Secret: clientSecret}, Remote: from, GrantType: "client_credentials",
	})
	return err
}

func (w *world) signIn(from netip.Addr, name, pw string) error {
	_, _, err := w.service.SignIn(w.tb.Context(), accounts.SignIn{Username: name, Password: pw, Remote: from})
	return err
}

// wantTooMany checks the error for too many failures.
func wantTooMany(t *testing.T, err error) (retryAfter time.Duration) {
	t.Helper()
	limited := check.As[*oautherr.LimitedError](t, err)
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

// TestSuccessCostsNothing: only failures count.
func TestSuccessCostsNothing(t *testing.T) {
	w := newWorld(t, strict)
	for range 20 {
		check.OK(t, w.attempt(here, "shop", secretOf("shop")))
	}
	for range 6 {
		check.OK(t, w.signIn(here, "alice", password))
	}
	check.ErrorIs(t, w.signIn(here, "alice", "x"), accounts.ErrSignIn)
	wantCode(t, oautherr.InvalidClient, w.attempt(here, "shop", "x"))
}

// TestSignInsLeaveTokensAlone: while many sign-ins are queued, other clients get tokens without
// waiting.
func TestSignInsLeaveTokensAlone(t *testing.T) {
	passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1, MaxWait: time.Minute})
	w := newWorld(t, func(o *grants.Options) { o.SignIn.Passwords = passwords })
	giveBack := testworld.TakeHashingSlot(t, passwords) // until all other requests are done
	var crowd sync.WaitGroup
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
	giveBack()
	crowd.Wait()
}
