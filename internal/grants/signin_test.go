package grants_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
)

// TestBusySaysWhenToComeBack: if the queue is full, the error has the time to wait, for sign-ins
// and for the password grant, whether or not the user exists.
func TestBusySaysWhenToComeBack(t *testing.T) {
	passwords := testworld.Passwords(secret.PasswordOptions{Concurrency: 1, Queue: 1})
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

// subject returns the sub and the username from introspection, which must be equal.
func (w *world) subject(token string) string {
	w.tb.Helper()
	answer, err := w.service.Introspect(w.tb.Context(), w.query("shop", token))
	check.OK(w.tb, err)
	check.Equal(w.tb, "username", answer.Username, answer.Subject)
	return answer.Subject
}

// TestWrongPasswordsOfTheGrant: the password grant says why a sign-in failed, and shares the limits of
// the sign-in page.
func TestWrongPasswordsOfTheGrant(t *testing.T) {
	w := newWorld(t, strict)
	const wrong = "The username or the password is wrong."
	for name, says := range map[string]string{
		"nobody":  wrong,
		"foo bar": wrong + " This is not a valid username for a new user: it is too long, or contains a space, a symbol or another invalid character.",
	} {
		_, err := w.token("shop", byPassword(name, password))
		wantCode(t, oautherr.InvalidGrant, err)
		check.Equal(t, name, check.As[*grants.Error](t, err).Description, says)
	}
	for range 3 {
		w.wantRefused(oautherr.InvalidGrant, "shop", byPassword("alice", "x"))
	}
	_, err := w.token("shop", byPassword("alice", password))
	wantTooMany(t, err)
	wantTooMany(t, w.signIn(here, "alice", password))
}

// TestOneNameHoweverTyped: case and width do not matter, and every sign-in path finds the same
// user.
func TestOneNameHoweverTyped(t *testing.T) {
	w, _ := limitedWorld(t)
	for _, name := range []string{"Alice", "ALICE", "\uff21lice"} {
		_, session, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: name, Password: password})
		check.OK(t, err, name)
		check.Equal(t, "user of the session", session.Username, "alice")

		answer, err := w.token("shop", byPassword(name, password))
		check.OK(t, err, name)
		check.Equal(t, "sub of "+name, w.subject(answer.AccessToken), "alice")
	}
	w.wantDenied("shop", byPassword("aLICE", password)) // the fourth request of alice
	w.wantDenied("shop", byPassword("aLiCe", "wrong"))  // no password is checked
	check.Equal(t, "denial of bob", w.limited("shop", byPassword("Bob", password)), nil)
}

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
	check.OK(t, w.attempt(elsewhere, "shop", secretOf("shop")), "locked out by a stranger")
	wantCode(t, oautherr.InvalidClient, w.attempt(elsewhere, "shop", "x"))
	check.OK(t, w.attempt(here, "shop", secretOf("shop")), "locked out behind the same gateway")

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
