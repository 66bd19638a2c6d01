package accounts_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	cookie, session, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	got, err := w.service.Session(t.Context(), cookie)
	check.OK(t, err)
	check.Equal(t, "session", got, session)
	check.Equal(t, "got.Username", got.Username, "alice")

	other, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	if cookie == other {
		t.Fatal("the second sign-in took the first session over")
	}
	for range 2 {
		check.OK(t, w.service.SignOut(t.Context(), cookie))
	}
	_, err = w.service.Session(t.Context(), cookie)
	check.ErrorIs(t, err, accounts.ErrNoSession)
	_, err = w.service.Session(t.Context(), other)
	check.OK(t, err)
}

func TestSignInRefuses(t *testing.T) {
	w := newWorld(t)
	for name, in := range map[string]accounts.SignIn{
		"wrong password":          {Username: "alice", Password: "x"},
		"no password":             {Username: "alice"},
		"unknown user":            {Username: "nobody", Password: password},
		"no user":                 {Password: password},
		"other case":              {Username: "Alice", Password: "X"},
		"white space":             {Username: "alice ", Password: password},
		"password with NUL bytes": {Username: "alice", Password: password + "\x00"},
		"endless name":            {Username: strings.Repeat("a", 1<<16), Password: password},
	} {
		t.Run(name, func(t *testing.T) {
			cookie, session, err := w.service.SignIn(t.Context(), in)
			check.ErrorIs(t, err, accounts.ErrSignIn)
			check.Equal(t, "cookie", cookie, "")
			check.Equal(t, "session", session, accounts.Session{})
		})
	}
}

// TestOldestSessionEnds: a user has at most the configured number of sessions.
//
// Attack (sign-ins): Unlimited sessions. A user's sessions are bounded. A new one ends the oldest.
func TestOldestSessionEnds(t *testing.T) {
	w := newWorld(t, func(o *accounts.Options) { o.SessionsPerUser = 2 })
	var cookies []string
	for _, name := range []string{"alice", "bob", "alice", "alice"} {
		cookie, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: name, Password: password, Remote: here})
		check.OK(t, err)
		cookies = append(cookies, cookie)
		w.clock.Advance(time.Second)
	}
	for i, want := range []error{accounts.ErrNoSession, nil, nil, nil} {
		_, err := w.service.Session(t.Context(), cookies[i])
		check.ErrorIs(t, err, want)
	}
}

func TestValidatePassword(t *testing.T) {
	longest := strings.Repeat("correct horse battery staple ", 50)
	for name, tc := range map[string]struct {
		password string
		ok       bool
	}{
		"plain":                      {"correct horse battery", true},
		"spaces around":              {" correct horse battery ", true},
		"other scripts":              {"pässwörd für 山田", true},
		"longest":                    {longest[:secret.MaxPasswordLength], true},
		"too long":                   {longest[:secret.MaxPasswordLength+1], false},
		"empty":                      {"", false},
		"shortest":                   {"vQ7!nd02", true},
		"too short":                  {"vQ7!nd0", false},
		"too short in other scripts": {"山田の猫は白", false},
		"guessable":                  {"P@ssw0rd2026", false},
		"the username":               {"alice-alice", false},
		"two lines":                  {"correct\nhorse battery", false},
		"NUL":                        {"correct\x00horse battery", false},
		"invalid UTF-8":              {"correct\xffhorse battery", false},
	} {
		check.Equal(t, name, accounts.ValidatePassword("alice", tc.password) == nil, tc.ok)
	}
}

func TestFailedSignInsAreLimited(t *testing.T) {
	w := newWorld(t, strict)
	check.OK(t, w.signIn(here, "alice", password))
	for range 3 {
		check.ErrorIs(t, w.signIn(here, "alice", "x"), accounts.ErrSignIn)
	}
	retryAfter := wantTooMany(t, w.signIn(here, "alice", "x"))
	wantTooMany(t, w.signIn(here, "alice", password))
	check.OK(t, w.signIn(elsewhere, "alice", password), "locked out by a stranger")
	check.OK(t, w.signIn(here, "bob", password), "locked out by another user of the same address")

	for range 2 {
		check.ErrorIs(t, w.signIn(here, "bob", "x"), accounts.ErrSignIn)
	}
	wantTooMany(t, w.signIn(here, "bob", password))
	wantTooMany(t, w.signIn(here, "nobody", "x"))
	check.OK(t, w.signIn(elsewhere, "bob", password))

	w.clock.Advance(retryAfter - time.Second)
	check.Equal(t, "Retry-After", wantTooMany(t, w.signIn(here, "alice", password)), time.Second)
	w.clock.Advance(time.Second)
	check.OK(t, w.signIn(here, "alice", password))
}

// TestGuessingAtOnceGainsNothing: guesses admitted at the same time are checked again when they get
// their turn to be hashed.
func TestGuessingAtOnceGainsNothing(t *testing.T) {
	w := newWorld(t, strict, func(o *accounts.Options) {
		o.Passwords = testworld.Passwords(secret.PasswordOptions{Concurrency: 1, MaxWait: time.Minute})
	})
	var wrong atomic.Int64
	var people sync.WaitGroup
	for range 30 {
		people.Go(func() {
			if err := w.signIn(here, "alice", "x"); errors.Is(err, accounts.ErrSignIn) {
				wrong.Add(1)
			} else {
				wantTooMany(t, err)
			}
		})
	}
	people.Wait()
	check.Equal(t, "guesses that were hashed", wrong.Load(), 3)
}

// TestWaitingGuessesAreAskedAgain: a queued attempt is not hashed if others have reached the limit
// of failures in between.
func TestWaitingGuessesAreAskedAgain(t *testing.T) {
	w, f := failingWorld(t, strict)
	f.Begun = func(operation string) {
		check.Equal(t, "operation", operation, "Get users")
		f.Begun = nil
		for range 3 {
			check.ErrorIs(t, w.signIn(here, "alice", "x"), accounts.ErrSignIn)
		}
	}
	wantTooMany(t, w.signIn(here, "alice", password))
}

// TestRefusedNames: a name that no user can have counts as a failure, gets its own error, and waits
// for a hash like an unknown user. It does not reach the store.
//
// Attack (usernames): Invalid names. They never reach the store, but wait and count like unknown
// ones.
func TestRefusedNames(t *testing.T) {
	passwords := testworld.Passwords(secret.PasswordOptions{Concurrency: 1})
	w, f := failingWorld(t, strict, func(o *accounts.Options) { o.Passwords = passwords })
	operations := f.Count()
	for _, name := range []string{
		"foo bar", "\u265a", "alice ", "\u202ealice", "ali\x00ce", "a\xff", strings.Repeat("a b", 50),
	} {
		clear(operations)
		w.clock.Advance(2 * time.Minute)
		err := w.signIn(here, name, password)
		check.ErrorIs(t, err, accounts.ErrSignIn)
		check.ErrorIs(t, err, accounts.ErrUsername)
		check.ErrorIs(t, w.signIn(here, name, password), accounts.ErrUsername)
		check.ErrorIs(t, w.signIn(here, name, password), accounts.ErrUsername)
		wantTooMany(t, w.signIn(here, name, password))
		check.Equal(t, "reads of users for three attempts with "+name, operations["Get users"], 0)
	}

	giveBack := testworld.TakeHashingSlot(t, passwords)
	defer giveBack()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"foo bar", "alice ", "nobody"} {
		_, _, err := w.service.SignIn(gone, accounts.SignIn{Username: name, Password: password, Remote: elsewhere})
		if err == nil || errors.Is(err, accounts.ErrSignIn) {
			t.Errorf("%q was answered %v without a hash", name, err)
		}
	}
}

// TestSignInsOfOneUserAreLimited: sign-ins are limited by address and username. Over the limit nothing is hashed.
func TestSignInsOfOneUserAreLimited(t *testing.T) {
	w := newWorld(t, func(o *accounts.Options) { o.SignIns = ratelimit.NewLimit("sign-ins", 3, time.Minute) })
	check.OK(t, w.signIn(here, "alice", password))
	check.ErrorIs(t, w.signIn(here, "alice", "wrong"), accounts.ErrSignIn)
	check.OK(t, w.signIn(here, "alice", password))
	check.OK(t, w.signIn(here, "alice", password))
	var wait time.Duration
	for name, err := range map[string]error{
		"right": w.signIn(here, "alice", password), "wrong": w.signIn(here, "alice", "x"),
	} {
		limited := check.As[*oautherr.LimitedError](t, err)
		wait = limited.RetryAfter
		want := fmt.Sprintf("Too many sign-ins with this username from this address; retry after %d seconds.", wait/time.Second)
		check.Equal(t, name, limited.Description(), want)
	}
	check.OK(t, w.signIn(elsewhere, "alice", password))
	check.OK(t, w.signIn(here, "bob", password))
	w.clock.Advance(wait)
	check.OK(t, w.signIn(here, "alice", password))
}

func TestNewRefuses(t *testing.T) {
	good := newWorld(t).opts
	for name, edit := range map[string]func(o *accounts.Options){
		"no users": func(o *accounts.Options) { o.Users = nil }, "no deriver": func(o *accounts.Options) { o.Deriver = nil },
		"no session": func(o *accounts.Options) { o.SessionsPerUser = -1 }, "tiny session": func(o *accounts.Options) { o.SessionLifetime = 1 },
		"bad limit": func(o *accounts.Options) { o.SignIns = ratelimit.NewLimit("x", -1, time.Minute) },
	} {
		opts := good
		edit(&opts)
		_, err := accounts.New(opts)
		check.Equal(t, name+" is refused", err != nil, true)
	}
}

// TestImportedHashThatWasChanged: an imported hash is not replaced if the password was changed in
// between.
func TestImportedHashThatWasChanged(t *testing.T) {
	w, f := failingWorld(t)
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	check.OK(t, err)
	w.changeUser(func(u *accounts.User) { u.PasswordHash = string(hash) })
	f.Meanwhile("Get users", func() {
		w.changeUser(func(u *accounts.User) { u.PasswordHash = "that of another password" })
	})
	check.OK(t, w.signIn(here, "alice", password))
	u, err := w.store.User(t.Context(), "alice")
	check.OK(t, err)
	check.Equal(t, "hash", u.PasswordHash, "that of another password")
}

// TestImportedHash: an imported hash is verified, and the first correct password replaces it with
// one of this server.
func TestImportedHash(t *testing.T) {
	w := newWorld(t)
	const password = "another long password"
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	check.OK(t, err)
	w.changeUser(func(u *accounts.User) { u.PasswordHash = string(hash) })
	stored := func() string {
		t.Helper()
		u, err := w.store.User(t.Context(), "alice")
		check.OK(t, err)
		return u.PasswordHash
	}
	_, _, err = w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password + "!"})
	if !errors.Is(err, accounts.ErrSignIn) || stored() != string(hash) {
		t.Errorf("a wrong password: %v, hash %s", err, stored())
	}
	cookie, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	if ours := stored(); !strings.HasPrefix(ours, "$argon2id$") || secret.Foreign(ours) != "" {
		t.Errorf("the hash is %s", ours)
	}
	_, err = w.service.Session(t.Context(), cookie)
	check.OK(t, err)
	_, _, err = w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
}
