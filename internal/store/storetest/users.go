package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

func testUsers(t *testing.T, target Target) {
	t.Helper()
	t.Run("create, read, delete", func(t *testing.T) { keepUsers(t, target.fresh(t)) })
	t.Run("change", func(t *testing.T) { changeUser(t, target.fresh(t)) })
	t.Run("one that cannot be read", func(t *testing.T) { unreadableUser(t, target) })
	t.Run("pages", func(t *testing.T) { pagesOfUsers(t, target.fresh(t)) })
	t.Run("a hash is replaced once", func(t *testing.T) { replaceHash(t, target.fresh(t)) })
	t.Run("every revocation counts", func(t *testing.T) { countStamp(t, target.fresh(t)) })
}

func keepUsers(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	list, err := b.Users(ctx)
	succeed(t, "users of an empty store", err)
	equal(t, "users of an empty store", []grants.StoredUser(nil), list)

	alice, bob := user("alice"), user("bob")
	succeed(t, "create", errors.Join(b.CreateUser(ctx, bob), b.CreateUser(ctx, alice)))
	changed := alice
	changed.PasswordHash = "other"
	failWith(t, "create twice", grants.ErrExists, b.CreateUser(ctx, changed))
	list, err = b.Users(ctx)
	succeed(t, "users", err)
	equal(t, "users, ordered by name", []grants.StoredUser{{User: alice}, {User: bob}}, list)
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

// changeUser changes fields one by one: the others stay.
func changeUser(t *testing.T, b Backend) {
	t.Helper()
	ctx, alice := t.Context(), user("alice")
	succeed(t, "create", errors.Join(b.CreateUser(ctx, alice), b.CreateUser(ctx, user("bob"))))
	later := alice.RowFrom.Add(time.Minute)
	both := map[string]time.Time{"b": later, "d": later.Add(1e6)}
	write, none := clientcfg.WriteAccess, clientcfg.NoAccess
	for _, step := range []struct {
		what   string
		change grants.UserChange
		want   func(*grants.User)
	}{
		{"the password", grants.UserChange{PasswordHash: "other"}, func(u *grants.User) { u.PasswordHash = "other" }},
		{"the count of the stamp", grants.UserChange{Revoke: true}, func(u *grants.User) { u.Stamp.Count++ }},
		{"the operator", grants.UserChange{Operator: &write}, func(u *grants.User) { u.Operator = write }},
		{"the operator, to none", grants.UserChange{Operator: &none}, func(u *grants.User) { u.Operator = none }},
		{"known addresses", grants.UserChange{Known: map[string]time.Time{"b": later}, Forgotten: []string{"a-_Z", "c"}}, func(u *grants.User) {
			u.Known = map[string]time.Time{"b": later}
		}},
		{"a later row", grants.UserChange{RowFrom: later}, func(u *grants.User) { u.RowFrom = later }},
		{"an earlier row", grants.UserChange{RowFrom: Epoch}, func(*grants.User) {}},
		{"all at once", grants.UserChange{PasswordHash: "third", Operator: &write, RowFrom: later.Add(1e6), Known: both, Revoke: true}, func(u *grants.User) {
			u.PasswordHash, u.Operator = "third", write
			u.RowFrom, u.Known = later.Add(1e6), both
			u.Stamp.Count++
		}},
	} {
		succeed(t, "change "+step.what, b.ChangeUser(ctx, "alice", step.change))
		step.want(&alice)
		got, err := b.User(ctx, "alice")
		succeed(t, "user", err)
		equal(t, "after a change of "+step.what, alice, got)
	}
	got, err := b.User(ctx, "bob")
	succeed(t, "user", err)
	equal(t, "the other user", user("bob"), got)

	fresh := grants.User{Name: "carol", PasswordHash: "h", CreatedAt: Epoch}
	succeed(t, "create", b.CreateUser(ctx, fresh))
	succeed(t, "know the first address", b.ChangeUser(ctx, "carol", grants.UserChange{Known: both, RowFrom: later, Forgotten: []string{"x"}}))
	fresh.Known, fresh.RowFrom = both, later
	got, err = b.User(ctx, "carol")
	succeed(t, "user", err)
	equal(t, "a user who had no such time", fresh, got)
}

// countStamp revokes one user many times at once: each counts.
func countStamp(t *testing.T, b Backend) {
	t.Helper()
	const revocations = 50
	alice := user("alice")
	succeed(t, "create", b.CreateUser(t.Context(), alice))
	all(t, revocations, func(i int) error {
		return b.ChangeUser(t.Context(), "alice", grants.UserChange{PasswordHash: strconv.Itoa(i), Revoke: true})
	})
	got, err := b.User(t.Context(), "alice")
	succeed(t, "user", err)
	alice.Stamp.Count += revocations
	equal(t, "the stamp", alice.Stamp, got.Stamp)
}

func pagesOfUsers(t *testing.T, b Backend) {
	t.Helper()
	for _, name := range []string{"ann", "bob", "böb", "cat"} {
		succeed(t, "create", b.CreateUser(t.Context(), user(name)))
	}
	for _, tt := range []struct {
		after string
		limit int
		want  []string
	}{
		{"", 10, []string{"ann", "bob", "böb", "cat"}},
		{"", 2, []string{"ann", "bob"}},
		{"bob", 2, []string{"böb", "cat"}},
		{"b", 1, []string{"bob"}},
		{"cat", 1, nil},
	} {
		list, err := b.UsersAfter(t.Context(), tt.after, tt.limit)
		succeed(t, "users", err)
		var names []string
		for _, u := range list {
			names = append(names, u.Name)
		}
		equal(t, fmt.Sprintf("%d after %q", tt.limit, tt.after), tt.want, names)
	}
}

// replaceHash: of those who saw a hash, one replaces it, and none if it was replaced meanwhile.
func replaceHash(t *testing.T, b Backend) {
	t.Helper()
	ctx, alice := t.Context(), user("alice")
	succeed(t, "create", b.CreateUser(ctx, alice))
	replace := func(seen, by string) error {
		return b.ChangeUser(ctx, "alice", grants.UserChange{PasswordHash: by, ReplacesHash: seen})
	}
	succeed(t, "replace", replace(alice.PasswordHash, "new"))
	failWith(t, "replace what is replaced", grants.ErrNotFound, replace(alice.PasswordHash, "newer"))
	got, err := b.User(ctx, "alice")
	succeed(t, "user", err)
	equal(t, "hash", "new", got.PasswordHash)
}
