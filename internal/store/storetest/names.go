package storetest

import (
	"strings"
	"testing"

	"oauth-server/internal/grants"
)

// testNames looks for names as they may come from outside: the result is "not found", whatever the
// bytes are, and no other error.
func testNames(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	for _, name := range []string{
		"", ".", "$where", "a.b", "{\"$gt\":\"\"}", "a\x00b", "\xff\xfe", "\xed\xa0\x80",
		strings.Repeat("x", 40_000), "名前", " ", "../../etc/passwd",
	} {
		_, err := b.User(ctx, name)
		failWith(t, "user", grants.ErrNotFound, err)
		failWith(t, "delete user", grants.ErrNotFound, b.DeleteUser(ctx, name))
		failWith(t, "change user", grants.ErrNotFound, b.ChangeUser(ctx, name, grants.UserChange{PasswordHash: "new"}))
	}
	for _, name := range []string{".", "$where", "a.b", "名前", " "} {
		succeed(t, "create user", b.CreateUser(ctx, user(name)))
		got, err := b.User(ctx, name)
		succeed(t, "user", err)
		equal(t, "user", user(name), got)
	}
}
