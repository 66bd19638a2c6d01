package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/grants"
)

func testAgreements(t *testing.T, target Target) {
	t.Helper()
	t.Run("kept by user and client", func(t *testing.T) { agreementsKept(t, target.fresh(t)) })
	t.Run("changed one version at a time", func(t *testing.T) { agreementsChanged(t, target.fresh(t)) })
	t.Run("swept when not used any more", func(t *testing.T) { agreementsSwept(t, target.fresh(t)) })
	t.Run("erased with their user", func(t *testing.T) { agreementsErased(t, target.fresh(t)) })
}

// agreementsOf returns those of a user.
func agreementsOf(t *testing.T, b Backend, username string) []grants.Agreement {
	t.Helper()
	list, err := b.AgreementsOf(t.Context(), username)
	succeed(t, "list", err)
	return list
}

func agreementsKept(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	_, err := b.Agreement(ctx, "ada", "shop")
	failWith(t, "look for none", grants.ErrNotFound, err)
	equal(t, "those of nobody", []grants.Agreement(nil), agreementsOf(t, b, "ada"))
	// Names that are close to each other, and the order that is asked for.
	want := map[string][]grants.Agreement{}
	for _, username := range []string{"ada", "adam", "ad", "älice", "ada\x00", "\x7f"} {
		for _, clientID := range []string{"a", "b", "shop", "shopping", "z"} {
			a := agreement(username, clientID)
			succeed(t, "put", b.PutAgreement(ctx, a))
			want[username] = append(want[username], a)
		}
	}
	for username, list := range want {
		equal(t, fmt.Sprintf("all of %q", username), list, agreementsOf(t, b, username))
		got, err := b.Agreement(ctx, username, "shop")
		succeed(t, "look", err)
		equal(t, "agreement", agreement(username, "shop"), got)
	}
	none := agreement("bare", "shop")
	none.Scopes = nil
	succeed(t, "put one without scopes", b.PutAgreement(ctx, none))
	equal(t, "one without scopes", []grants.Agreement{none}, agreementsOf(t, b, "bare"))

	gone := want["ada"][2]
	other := gone
	other.ID = "another"
	succeed(t, "delete another one of the names", b.DeleteAgreement(ctx, &other))
	equal(t, "all are left", want["ada"], agreementsOf(t, b, "ada"))
	succeed(t, "delete", b.DeleteAgreement(ctx, &gone))
	succeed(t, "delete what is not there", b.DeleteAgreement(ctx, &gone))
	equal(t, "the others are left", append(want["ada"][:2:2], want["ada"][3:]...), agreementsOf(t, b, "ada"))
}

func agreementsChanged(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	first := agreement("ada", "shop")
	second := first
	second.Version, second.Scopes, second.ExpiresAt = 2, []string{"admin"}, first.ExpiresAt.Add(time.Hour)
	failWith(t, "replace none", grants.ErrExists, b.PutAgreement(ctx, second))
	succeed(t, "add", b.PutAgreement(ctx, first))
	failWith(t, "add twice", grants.ErrExists, b.PutAgreement(ctx, first))
	other := second
	other.ID = "another"
	failWith(t, "replace another one of the names", grants.ErrExists, b.PutAgreement(ctx, other))
	third := second
	third.Version = 3
	failWith(t, "leave out a version", grants.ErrExists, b.PutAgreement(ctx, third))
	succeed(t, "replace", b.PutAgreement(ctx, second))
	failWith(t, "replace twice", grants.ErrExists, b.PutAgreement(ctx, second))
	equal(t, "the second", []grants.Agreement{second}, agreementsOf(t, b, "ada"))

	var won atomic.Int64
	all(t, 64, func(i int) error {
		a := third
		a.Scopes = []string{fmt.Sprint("scope-", i)}
		err := b.PutAgreement(ctx, a)
		if err == nil {
			won.Add(1)
		} else if !errors.Is(err, grants.ErrExists) {
			return err
		}
		return nil
	})
	equal(t, "how many of 64 at once replaced it", int64(1), won.Load())
}

func agreementsSwept(t *testing.T, b Backend) {
	t.Helper()
	const n = 1500 // more than any backend takes in one step
	ctx := t.Context()
	all(t, n, func(i int) error {
		a := agreement(fmt.Sprintf("user %d", i%50), fmt.Sprintf("client %04d", i/50))
		if i%3 == 0 {
			a.ExpiresAt = Epoch.Add(-time.Millisecond)
		}
		return b.PutAgreement(ctx, a)
	})
	used, err := b.Agreement(ctx, "user 0", "client 0000")
	succeed(t, "look", err)
	used.Version, used.ExpiresAt = 2, Epoch.Add(time.Hour)
	succeed(t, "use one that would expire", b.PutAgreement(ctx, used))
	sweep(t, b, Epoch, n/3-1)
	sweep(t, b, Epoch, 0)
	left := 0
	for i := range 50 {
		left += len(agreementsOf(t, b, fmt.Sprintf("user %d", i)))
	}
	equal(t, "left", n-n/3+1, left)
}

func agreementsErased(t *testing.T, b Backend) {
	t.Helper()
	ctx := t.Context()
	succeed(t, "create", errors.Join(b.CreateUser(ctx, user("ada")), b.CreateUser(ctx, user("adam")),
		b.PutAgreement(ctx, agreement("ada", "shop")), b.PutAgreement(ctx, agreement("ada", "web")),
		b.PutAgreement(ctx, agreement("adam", "shop")), b.PutAgreement(ctx, agreement("bob", "shop"))))
	succeed(t, "delete the user", b.DeleteUser(ctx, "ada"))
	equal(t, "of the deleted user", []grants.Agreement(nil), agreementsOf(t, b, "ada"))
	equal(t, "of another", []grants.Agreement{agreement("adam", "shop")}, agreementsOf(t, b, "adam"))
	failWith(t, "delete who is not there", grants.ErrNotFound, b.DeleteUser(ctx, "bob"))
	equal(t, "what was left of bob", []grants.Agreement(nil), agreementsOf(t, b, "bob"))
}
