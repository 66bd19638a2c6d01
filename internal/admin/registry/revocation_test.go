package registry

import (
	"context"
	"errors"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	datastore "oauth-server/internal/store"
	"oauth-server/internal/strict/fielderr"
)

// timed is a store with its own clock.
type timed struct {
	*testworld.Store
	now time.Time
	err error
}

func (s *timed) Now(context.Context) (time.Time, error) { return s.now, s.err }

func newTimed(t *testing.T) *timed {
	t.Helper()
	s := &timed{Store: openTestStore(t), now: noon.Add(time.Hour)}
	addClient(t, s, clientcfg.Client{ID: "shop"})
	return s
}

func TestRotationWithOverlap(t *testing.T) {
	store := newTimed(t)
	rotate := func(r NewSecret) (clientcfg.Client, string) {
		t.Helper()
		before, err := FindClient(t.Context(), store, "shop")
		check.OK(t, err)
		c, shown, err := RotateSecret(t.Context(), store, "shop", r)
		if err != nil || !c.SecretDigest.Matches(shown) || c.SecretDigest == before.SecretDigest || !c.SecretUsed.IsZero() {
			t.Fatalf("%+v, %v", c, err)
		}
		if r.Overlap > 0 {
			until := store.now.Add(r.Overlap.Std()).Truncate(time.Second)
			if c.Former.Digest != before.SecretDigest || !c.Former.Until.Equal(until) || !c.Former.Used.Equal(before.SecretUsed) {
				t.Errorf("the former secret: %+v", c.Former)
			}
		} else if c.Former != (clientcfg.FormerSecret{}) {
			t.Errorf("a former secret stays: %+v", c.Former)
		}
		return c, shown
	}
	_, first := rotate(NewSecret{Overlap: ratelimit.Duration(24 * time.Hour)})
	used := store.now.Truncate(time.Minute)
	check.OK(t, store.RecordUses(t.Context(), []clientcfg.SecretUse{{ClientID: "shop", Digest: secret.DigestOf(first), At: used}}))
	c, _ := rotate(NewSecret{Overlap: ratelimit.Duration(time.Hour)})
	if !c.Former.Used.Equal(used) {
		t.Errorf("the last use of the former secret is %v", c.Former.Used)
	}
	if c, _ = rotate(NewSecret{}); c.Stamp.Count != 1 {
		t.Errorf("revoked: %+v", c.Stamp)
	}
	rotate(NewSecret{Overlap: ratelimit.Duration(time.Hour)})
	if c, _ = rotate(NewSecret{Revoke: true}); c.Stamp.Count != 2 {
		t.Error("not revoked")
	}
	var invalid fielderr.Errors
	for _, r := range []NewSecret{{Overlap: -1}, {Overlap: ratelimit.Duration(MaxOverlap) + 1}, {Overlap: ratelimit.Duration(time.Hour), Revoke: true}} {
		if _, _, err := RotateSecret(t.Context(), store, "shop", r); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestSetPassword: a new password must meet the same requirements as the first one. A bad one
// changes nothing.
//
// Attack (rfc9700): 4.14.2 changed password. It ends all sessions and families. Also
// grants.TestRevokedUser.
func TestSetPassword(t *testing.T) {
	store := newTimed(t)
	if _, err := CreateUser(t.Context(), store, "ada", testPassword, clientcfg.ReadAccess, noon); err != nil {
		t.Fatal(err)
	}
	verify := func(password string) (accounts.User, bool) {
		t.Helper()
		u, err := store.User(t.Context(), "ada")
		check.OK(t, err)
		ok, err := secret.NewPasswords(secret.PasswordOptions{}).Verify(t.Context(), u.PasswordHash, password)
		return u, ok && err == nil
	}
	var invalid fielderr.Errors
	for _, bad := range []string{"", "2short!", "password2026", "ada-ada-ada", testPassword + "\n"} {
		if err := SetPassword(t.Context(), store, "ada", bad); !errors.As(err, &invalid) {
			t.Errorf("SetPassword(%q) = %v", bad, err)
		}
	}
	if u, ok := verify(testPassword); !ok || u.Stamp.Count != 1 {
		t.Errorf("a refused password changed %+v", u)
	}
	check.ErrorIs(t, SetPassword(t.Context(), store, "nobody", "another staple"), datastore.ErrNotFound)
	check.OK(t, SetPassword(t.Context(), store, "ada", "another staple for ada"))
	if u, ok := verify("another staple for ada"); !ok || u.Stamp.Count != 2 || u.Operator != clientcfg.ReadAccess {
		t.Errorf("%+v, verified %v", u, ok)
	}
}

// TestUnlockUser: the row of wrong passwords begins anew, under any spelling of the name.
func TestUnlockUser(t *testing.T) {
	store := openTestStore(t)
	_, err := CreateUser(t.Context(), store, "ada", testPassword, clientcfg.NoAccess, noon)
	check.OK(t, err)
	before := time.Now().Truncate(time.Millisecond)
	_, err = on(store).UnlockUser(t.Context(), "ADA")
	check.OK(t, err)
	known, err := accounts.NewRepository(store).Known(t.Context(), "ada")
	check.OK(t, err)
	check.Equal(t, "the row begins now", known.RowFrom.Before(before), false)
	_, err = on(store).UnlockUser(t.Context(), "nobody")
	check.ErrorIs(t, err, datastore.ErrNotFound)
}
