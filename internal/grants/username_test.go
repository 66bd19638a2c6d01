package grants_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// byPassword is a request of the password grant.
func byPassword(name, pw string) grants.TokenRequest {
	return grants.TokenRequest{GrantType: "password", Username: name, Password: pw, Remote: here}
}

// subject returns the sub and the username that introspection reports, which must be equal.
func (w *world) subject(token string) string {
	w.tb.Helper()
	answer, err := w.service.Introspect(w.tb.Context(), grants.TokenQuery{Credentials: w.credentials("shop"), Token: token})
	check.OK(w.tb, err)
	check.Equal(w.tb, "username", answer.Username, answer.Subject)
	return answer.Subject
}

// addUser adds a user as an earlier release may have, under any name.
func (w *world) addUser(name, pw string) {
	w.tb.Helper()
	hash, err := secret.NewPasswords(secret.PasswordOptions{}).Hash(w.tb.Context(), pw)
	check.OK(w.tb, err)
	check.OK(w.tb, w.store.CreateUser(w.tb.Context(), grants.User{Name: name, PasswordHash: hash, CreatedAt: start.Add(-time.Hour)}))
}

// TestOneNameHoweverTyped: case and width do not matter, and every way is the same user.
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
		wantErr(t, w.signIn(here, name, "x"), grants.ErrSignIn)
	}
	for _, name := range []string{"alice", "ALICE"} {
		wantTooMany(t, w.signIn(here, name, password))
	}
	check.OK(t, w.signIn(here, "Bob", password))
}

// TestRefusedNames: a name that no new user can have counts as a failure, says so, and waits for a hash
// like a user who does not exist. One that a user of an earlier release can have is read, whether or not
// there is one; others reach no store.
func TestRefusedNames(t *testing.T) {
	passwords := secret.NewPasswords(secret.PasswordOptions{Concurrency: 1})
	w, f := failingWorld(t, strict, func(o *grants.Options) { o.Passwords = passwords })
	w.addUser("Eve Adams", "her own, and no other")
	operations := f.count()
	for name, reads := range map[string]int{
		"foo bar": 1, "Eve Adams": 1, "\u265a": 1, "alice ": 0, "\u202ealice": 0, "ali\x00ce": 0, "a\xff": 0, strings.Repeat("a b", 50): 0,
	} {
		clear(operations)
		w.clock.Advance(2 * time.Minute)
		err := w.signIn(here, name, password)
		wantErr(t, err, grants.ErrSignIn)
		wantErr(t, err, grants.ErrUsername)
		_, err = w.token("shop", byPassword(name, password))
		wantCode(t, grants.InvalidGrant, err)
		check.ErrorSays(t, err, "No new user can have this username")
		wantErr(t, w.signIn(here, name, password), grants.ErrUsername)
		wantTooMany(t, w.signIn(here, name, password))
		check.Equal(t, "reads of users for three attempts with "+name, operations["User"], 3*reads)
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

// TestUsersOfEarlierReleases: a name that is not in its canonical form still works as it is stored, and
// is the sub and the key of the limits.
func TestUsersOfEarlierReleases(t *testing.T) {
	const hers = "her own, and no other"
	w, _ := limitedWorld(t)
	w.addUser("Alice", hers) // besides alice
	w.addUser("Carol", hers)
	w.addUser("Eve Adams", hers)
	for _, tt := range []struct{ typed, password, want string }{ // no name: refused
		{"Alice", hers, "Alice"},
		{"Alice", password, ""},
		{"alice", password, "alice"},
		{"alice", hers, ""},
		{"ALICE", password, "alice"},
		{"ALICE", hers, ""},
		{"Carol", hers, "Carol"},
		{"carol", hers, ""},
		{"CAROL", hers, ""},
		{"Eve Adams", hers, "Eve Adams"}, // a space is not canonical in any form
		{"Eve Adams", password, ""},
		{"eve adams", hers, ""},
		{"Eve\u00a0Adams", hers, ""},
	} {
		_, session, err := w.service.SignIn(t.Context(), grants.SignIn{Username: tt.typed, Password: tt.password})
		if session.Username != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("sign-in of %q: user %q, %v; want %q", tt.typed, session.Username, err, tt.want)
		}
	}
	for _, name := range []string{"Carol", "Alice", "Eve Adams"} {
		for range 3 {
			check.Equal(t, "sub", w.subject(w.mustToken("shop", byPassword(name, hers)).AccessToken), name)
		}
		if w.limited("shop", byPassword(name, hers)) == nil {
			t.Errorf("%s is over the limit of 3 and got a token", name)
		}
	}
	w.mustToken("shop", byPassword("alice", password)) // who has a limit of her own
}

// TestTokensOfRefusedNames: a user whose name no new user can have keeps the session and the tokens
// from before the upgrade.
func TestTokensOfRefusedNames(t *testing.T) {
	w := newWorld(t)
	w.addUser("Eve Adams", password)
	session := grants.Session{Digest: secret.DigestOf("cookie"), Username: "Eve Adams", CreatedAt: start, ExpiresAt: start.Add(time.Hour)}
	check.OK(t, w.store.CreateSession(t.Context(), session, 1))
	got, err := w.service.Session(t.Context(), "cookie")
	check.OK(t, err)
	prompt, err := w.service.Authorize(t.Context(), w.authorizeRequest("shop"))
	check.OK(t, err)
	code, err := w.approve(prompt, got)
	check.OK(t, err)
	first := w.mustToken("shop", w.redemption("shop", code))
	next := w.mustToken("shop", refreshing(first.RefreshToken))
	check.Equal(t, "sub", w.subject(next.AccessToken), "Eve Adams")
}

func TestStoredName(t *testing.T) {
	w, f := failingWorld(t)
	w.addUser("Alice", "her own, and no other")
	for given, want := range map[string]string{
		"alice": "alice", "Alice": "Alice", "ALICE": "alice", "Nobody": "nobody", "Eve Adams": "Eve Adams", "": "", "a\xff": "a\xff",
	} {
		got, err := grants.StoredName(t.Context(), f, given)
		check.OK(t, err)
		check.Equal(t, given, got, want)
	}
	f.operation, f.err = "User", errDown
	_, err := grants.StoredName(t.Context(), f, "BOB")
	wantErr(t, err, errDown)
}
