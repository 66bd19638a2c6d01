package grants_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/secret"
)

// byPassword is a request of the password grant.
func byPassword(name, pw string) grants.TokenRequest {
	return grants.TokenRequest{GrantType: "password", Username: name, Password: pw, Remote: here}
}

// subject returns the sub and the username from introspection, which must be equal.
func (w *world) subject(token string) string {
	w.tb.Helper()
	answer, err := w.service.Introspect(w.tb.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: token})
	check.OK(w.tb, err)
	check.Equal(w.tb, "username", answer.Username, answer.Subject)
	return answer.Subject
}

// TestOneNameHoweverTyped: case and width do not matter, and every sign-in path finds the same
// user.
func TestOneNameHoweverTyped(t *testing.T) {
	w, _ := limitedWorld(t)
	for _, name := range []string{"Alice", "ALICE", "\uff21lice"} {
		_, session, err := w.service.SignIn(t.Context(), grants.SignIn{Username: name, Password: password})
		check.OK(t, err, name)
		check.Equal(t, "user of the session", session.Username, "alice")

		answer, err := w.token("shop", byPassword(name, password))
		check.OK(t, err, name)
		check.Equal(t, "sub of "+name, w.subject(answer.AccessToken), "alice")
	}
	if w.limited("shop", byPassword("aLICE", password)) == nil {
		t.Error("the fourth request was admitted, want the limit of alice")
	}
	if w.limited("shop", byPassword("aLiCe", "wrong")) == nil {
		t.Error("a password was checked over the limit of alice")
	}
	if limited := w.limited("shop", byPassword("Bob", password)); limited != nil {
		t.Errorf("bob: %v", limited)
	}
}

func TestWrongPasswordsOfOneNameShareALimit(t *testing.T) {
	w := newWorld(t, strict)
	for _, name := range []string{"Alice", "aLICE", "\uff21LICE"} {
		check.ErrorIs(t, w.signIn(here, name, "x"), grants.ErrSignIn)
	}
	for _, name := range []string{"alice", "ALICE"} {
		wantTooMany(t, w.signIn(here, name, password))
	}
	check.OK(t, w.signIn(here, "Bob", password))
}

// TestRefusedNames: a name that no user can have counts as a failure, gets its own error, and waits
// for a hash like an unknown user. It does not reach the store.
func TestRefusedNames(t *testing.T) {
	passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
	w, f := failingWorld(t, strict, func(o *grants.Options) { o.Passwords = passwords })
	operations := f.count()
	for _, name := range []string{
		"foo bar", "\u265a", "alice ", "\u202ealice", "ali\x00ce", "a\xff", strings.Repeat("a b", 50),
	} {
		clear(operations)
		w.clock.Advance(2 * time.Minute)
		err := w.signIn(here, name, password)
		check.ErrorIs(t, err, grants.ErrSignIn)
		check.ErrorIs(t, err, grants.ErrUsername)
		_, err = w.token("shop", byPassword(name, password))
		wantCode(t, oautherr.InvalidGrant, err)
		check.ErrorSays(t, err, "No new user can have this username")
		check.ErrorIs(t, w.signIn(here, name, password), grants.ErrUsername)
		wantTooMany(t, w.signIn(here, name, password))
		check.Equal(t, "reads of users for three attempts with "+name, operations["User"], 0)
	}

	giveBack := takeOnlyTurn(t, passwords)
	defer giveBack()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"foo bar", "alice ", "nobody"} {
		_, _, err := w.service.SignIn(gone, grants.SignIn{Username: name, Password: password, Remote: elsewhere})
		if err == nil || errors.Is(err, grants.ErrSignIn) {
			t.Errorf("%q was answered %v without a hash", name, err)
		}
	}
}
