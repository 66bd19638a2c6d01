package accounts_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/secret"
)

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
