package storetest

import (
	"testing"

	"oauth-server/internal/grants"
)

// unreadableUser spoils one user. It takes only itself out: it is reported, it exists, and it can be
// deleted.
func unreadableUser(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	for _, name := range []string{"a", "bad", "c"} {
		succeed(t, "create", b.CreateUser(ctx, user(name)))
	}
	target.SpoilUser(t, b, "bad")
	list, err := b.Users(ctx)
	succeed(t, "users", err)
	if len(list) == 3 {
		failWith(t, "the one that cannot be read", grants.ErrUnreadableUser, list[1].Err)
		list[1].Err = nil
	}
	equal(t, "users", []grants.StoredUser{{User: user("a")}, {User: grants.User{Name: "bad"}}, {User: user("c")}}, list)
	_, err = b.User(ctx, "bad")
	failWith(t, "read", grants.ErrUnreadableUser, err)
	failWith(t, "create over it", grants.ErrExists, b.CreateUser(ctx, user("bad")))
	succeed(t, "delete it", b.DeleteUser(ctx, "bad"))
	succeed(t, "create it anew", b.CreateUser(ctx, user("bad")))
	got, err := b.User(ctx, "bad")
	succeed(t, "read it anew", err)
	equal(t, "the new one", user("bad"), got)
}
