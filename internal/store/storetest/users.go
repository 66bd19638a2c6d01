package storetest

import (
	"errors"
	"testing"

	"oauth-server/internal/grants"
)

func testUsers(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	list, err := b.Users(ctx)
	succeed(t, "users of an empty store", err)
	equal(t, "users of an empty store", []grants.User(nil), list)

	alice, bob := user("alice"), user("bob")
	succeed(t, "create", errors.Join(b.CreateUser(ctx, bob), b.CreateUser(ctx, alice)))
	changed := alice
	changed.PasswordHash = "other"
	failWith(t, "create twice", grants.ErrExists, b.CreateUser(ctx, changed))
	list, err = b.Users(ctx)
	succeed(t, "users", err)
	equal(t, "users, ordered by name", []grants.User{alice, bob}, list)
	got, err := b.User(ctx, "alice")
	succeed(t, "user", err)
	equal(t, "user", alice, got)
	for _, name := range []string{"", "Alice", "alic", "alice ", "alice\x00"} {
		_, err = b.User(ctx, name)
		failWith(t, "look for "+name, grants.ErrNotFound, err)
	}

	succeed(t, "delete", b.DeleteUser(ctx, "alice"))
	failWith(t, "delete twice", grants.ErrNotFound, b.DeleteUser(ctx, "alice"))
	_, err = b.User(ctx, "alice")
	failWith(t, "look for the deleted one", grants.ErrNotFound, err)
	succeed(t, "create anew", b.CreateUser(ctx, alice))
}
