package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func testSignIns(t *testing.T, target Target) {
	t.Helper()
	t.Run("lists", func(t *testing.T) { listSignIns(t, target) })
	t.Run("times that JSON cannot show", func(t *testing.T) { wrongTimes(t, target.fresh(t)) })
	t.Run("many families", func(t *testing.T) { manyFamilies(t, target.fresh(t)) })
}

// listSignIns lists what users are signed in with.
func listSignIns(t *testing.T, target Target) {
	t.Helper()
	b, ctx := target.fresh(t), t.Context()
	sessions := func(user string) []grants.Session {
		t.Helper()
		list, err := b.SessionsOf(ctx, user)
		succeed(t, "sessions", err)
		return list
	}
	familiesOf := func(user string) (list []grants.Family) {
		t.Helper()
		succeed(t, "families", b.FamiliesOf(ctx, user, func(some []grants.Family) error {
			list = append(list, some...)
			return nil
		}))
		return list
	}
	families := func(user string) (names []string) {
		t.Helper()
		for _, f := range familiesOf(user) {
			names = append(names, fmt.Sprint(f.Family, " ", f.Generation))
		}
		slices.Sort(names)
		return names
	}
	equal(t, "sessions of nobody", []grants.Session(nil), sessions("bob"))
	equal(t, "families of nobody", []string(nil), families("bob"))
	for i := range 3 {
		succeed(t, "create", errors.Join(
			b.CreateSession(ctx, sessionOf("bob", i), mostSessions), b.CreateSession(ctx, sessionOf("bo", i), mostSessions)))
	}
	succeed(t, "sign out", b.DeleteSession(ctx, sessionOf("bob", 1).Digest))
	equal(t, "sessions", []grants.Session{sessionOf("bob", 2), sessionOf("bob", 0)}, sessions("bob"))
	equal(t, "sessions of a name that is no text", []grants.Session(nil), sessions("b\xff"))

	of := func(user, name string) grants.Family {
		f := family(name)
		f.Username = user
		return f
	}
	first := of("bob", "first")
	succeed(t, "create", errors.Join(b.CreateFamily(ctx, first), b.CreateFamily(ctx, of("bob", "second")), b.CreateFamily(ctx, of("bo", "third"))))
	first.Generation, first.IssuedAt = 2, first.IssuedAt.Add(time.Minute)
	succeed(t, "refresh", b.RotateFamily(ctx, first))
	coded := code("code")
	coded.Username = "bob"
	begun := of("bob", "code")
	succeed(t, "code", errors.Join(b.CreateCode(ctx, coded), b.RedeemCode(ctx, coded.Digest, &begun)))
	equal(t, "families", []string{"family of code 1", "family of first 2", "family of second 1"}, families("bob"))
	equal(t, "families of a name that is no text", []string(nil), families("bob\xff"))
	failed := errors.New("failed")
	failWith(t, "families, until it fails", failed, b.FamiliesOf(ctx, "bob", func([]grants.Family) error { return failed }))
	want := of("bo", "third")
	want.Digest = secret.Digest{}
	equal(t, "a whole family", []grants.Family{want}, familiesOf("bo"))
}

// manyFamilies: all are found, whatever is done to those that were, and however many others there are.
func manyFamilies(t *testing.T, b Backend) {
	t.Helper()
	ctx, number, seen := t.Context(), 2500, map[string]bool{}
	all(t, number, func(i int) error {
		f := family(fmt.Sprint(i))
		f.Username = []string{"bob", "other"}[i%2]
		return b.CreateFamily(ctx, f)
	})
	err := b.FamiliesOf(ctx, "bob", func(some []grants.Family) error {
		for _, f := range some {
			seen[f.Family] = true
		}
		return b.Revoke(ctx, some[0].Family, Epoch)
	})
	succeed(t, "families", err)
	equal(t, "families", number/2, len(seen))
}

// wrongTimes: a record with a time that no release writes cannot be read. It takes only itself out.
func wrongTimes(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	for i, wrong := range []time.Time{Epoch.AddDate(9000, 0, 0), Epoch.AddDate(-9000, 0, 0), Epoch.AddDate(1_000_000, 0, 0)} {
		user := fmt.Sprint("user ", i)
		f, s, a := family("bad "+user), sessionOf(user, 1), agreement(user, "bad")
		if f.ExpiresAt, s.ExpiresAt, a.ExpiresAt = wrong, wrong, wrong; i == 1 { // MongoDB removes what has expired
			f, s, a = family("bad "+user), sessionOf(user, 1), agreement(user, "bad")
			f.AuthTime, s.CreatedAt, a.UsedAt = wrong, wrong, wrong
		}
		good := family("good " + user)
		f.Username, good.Username = user, user
		succeed(t, "create", errors.Join(b.CreateFamily(ctx, f), b.CreateFamily(ctx, good),
			b.CreateSession(ctx, s, mostSessions), b.CreateSession(ctx, sessionOf(user, 2), mostSessions),
			b.PutAgreement(ctx, a), b.PutAgreement(ctx, agreement(user, "good"))))
		_, noFamily := b.Family(ctx, f.Digest)
		_, noSession := b.Session(ctx, s.Digest)
		_, noAgreement := b.Agreement(ctx, user, "bad")
		for _, err := range []error{noFamily, noSession, noAgreement} {
			if err == nil || errors.Is(err, grants.ErrNotFound) {
				t.Errorf("%v was read with the error %v", wrong, err)
			}
		}
		good.Digest = secret.Digest{}
		succeed(t, "families", b.FamiliesOf(ctx, user, func(some []grants.Family) error {
			equal(t, "families", []grants.Family{good}, some)
			return nil
		}))
		list, err := b.SessionsOf(ctx, user)
		succeed(t, "sessions", err)
		equal(t, "sessions", []grants.Session{sessionOf(user, 2)}, list)
		equal(t, "agreements", []grants.Agreement{agreement(user, "good")}, agreementsOf(t, b, user))
		succeed(t, "sign out", b.DeleteSession(ctx, s.Digest))
	}
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
