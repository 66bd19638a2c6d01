package grants_test

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"

	"oauth-server/internal/grants"
)

func TestSignIn(t *testing.T) {
	w := newWorld(t)
	cookie, session, err := w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	got, err := w.service.Session(t.Context(), cookie)
	check.OK(t, err)
	check.Equal(t, "session", got, session)
	check.Equal(t, "got.Username", got.Username, "alice")

	other, _, err := w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: password})
	check.OK(t, err)
	if cookie == other {
		t.Fatal("the second sign-in took the first session over")
	}
	for range 2 {
		check.OK(t, w.service.SignOut(t.Context(), cookie))
	}
	_, err = w.service.Session(t.Context(), cookie)
	check.ErrorIs(t, err, grants.ErrNoSession)
	_, err = w.service.Session(t.Context(), other)
	check.OK(t, err)
}

func TestSignInRefuses(t *testing.T) {
	w := newWorld(t)
	for name, in := range map[string]grants.SignIn{
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
			check.ErrorIs(t, err, grants.ErrSignIn)
			check.Equal(t, "cookie", cookie, "")
			check.Equal(t, "session", session, grants.Session{})
		})
	}
}

func TestSessionEnds(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"when it expires": func(w *world) { w.clock.Advance(12 * time.Hour) },
		"with the user":   func(w *world) { check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil)) },
		"with the user, though a namesake follows": func(w *world) {
			check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil))
			check.OK(t, w.store.CreateUser(t.Context(), grants.User{Name: "alice", CreatedAt: start, Stamp: secret.NewStamp()}, clientcfg.Event{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			cookie, _, err := w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: password})
			check.OK(t, err)
			w.clock.Advance(time.Hour)
			_, err = w.service.Session(t.Context(), cookie)
			check.OK(t, err)
			end(w)
			_, err = w.service.Session(t.Context(), cookie)
			check.ErrorIs(t, err, grants.ErrNoSession)
		})
	}
	for _, cookie := range []string{"", "x"} {
		_, err := newWorld(t).service.Session(t.Context(), cookie)
		check.ErrorIs(t, err, grants.ErrNoSession)
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
		t.Run(name, func(t *testing.T) {
			if err := grants.ValidatePassword("alice", tc.password); (err == nil) != tc.ok {
				t.Errorf("ValidatePassword(%q) = %v, want ok %v", tc.password, err, tc.ok)
			}
		})
	}
}
