package registry

import (
	"context"
	"errors"
	"testing"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/embedded"
)

// timed is a store with a clock of its own.
type timed struct {
	*embedded.Store
	now time.Time
	err error
}

func (s *timed) Now(context.Context) (time.Time, error) { return s.now, s.err }

func newTimed(t *testing.T) *timed {
	t.Helper()
	s := &timed{Store: openTestStore(t), now: noon.Add(time.Hour)}
	if _, _, err := CreateClient(t.Context(), s, clientcfg.Client{ID: "shop"}, noon); err != nil {
		t.Fatal(err)
	}
	return s
}

// A revocation goes by the clock of the store, reaches ten seconds into the future, is in whole seconds,
// and takes no earlier one back.
func TestRevocationsGoByTheClockOfTheStore(t *testing.T) {
	store := newTimed(t)
	if _, err := CreateUser(t.Context(), store, "ada", testPassword, clientcfg.ReadAccess, noon); err != nil {
		t.Fatal(err)
	}
	revokeBoth := func() (client, user time.Time) {
		t.Helper()
		c, err := RevokeClient(t.Context(), store, "shop")
		_, err2 := RevokeUser(t.Context(), store, "ada")
		u, err3 := store.User(t.Context(), "ada")
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		if u.Operator != clientcfg.ReadAccess || u.PasswordHash == "" {
			t.Errorf("the revocation changed the user to %+v", u)
		}
		return c.NotBefore, u.NotBefore
	}
	want := store.now.Truncate(time.Second).Add(11 * time.Second)
	for i := range 3 {
		if c, u := revokeBoth(); !c.Equal(want) || !u.Equal(want) {
			t.Errorf("revoked until %v and %v, want %v", c, u, want)
		}
		if i == 1 {
			store.now = store.now.Add(-time.Hour) // the clock of the database was set back
		}
	}
	if c, err := FindClient(t.Context(), store, "shop"); err != nil || !c.NotBefore.Equal(want) || c.SecretDigest.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
	store.err = errors.New("no database")
	if _, err := RevokeClient(t.Context(), store, "shop"); !errors.Is(err, store.err) {
		t.Errorf("RevokeClient() = %v", err)
	}
	store.err = nil
	if _, err := RevokeClient(t.Context(), store, "nobody"); !errors.Is(err, clientcfg.ErrNotFound) {
		t.Errorf("RevokeClient(unknown) = %v", err)
	}
	if _, err := RevokeUser(t.Context(), store, "nobody"); !errors.Is(err, grants.ErrNotFound) {
		t.Errorf("RevokeUser(unknown) = %v", err)
	}
}

func TestNotBeforeIsRoundedUp(t *testing.T) {
	whole := noon.Truncate(time.Second)
	for after, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 1: 11 * time.Second, time.Second - 1: 11 * time.Second} {
		if got := notBefore(whole.Add(after)); !got.Equal(whole.Add(want)) {
			t.Errorf("%v after the second: %v", after, got)
		}
	}
}

func TestRotationWithOverlap(t *testing.T) {
	store := newTimed(t)
	rotate := func(r Rotation) (clientcfg.Client, string) {
		t.Helper()
		before, err := FindClient(t.Context(), store, "shop")
		if err != nil {
			t.Fatal(err)
		}
		c, shown, err := RotateSecret(t.Context(), store, "shop", r)
		if err != nil || !c.SecretDigest.Matches(shown) || c.SecretDigest == before.SecretDigest || !c.SecretUsed.IsZero() {
			t.Fatalf("%+v, %v", c, err)
		}
		if r.Overlap > 0 {
			until := store.now.Add(r.Overlap).Truncate(time.Second)
			if c.Former.Digest != before.SecretDigest || !c.Former.Until.Equal(until) || !c.Former.Used.Equal(before.SecretUsed) {
				t.Errorf("the former secret: %+v", c.Former)
			}
		} else if c.Former != (clientcfg.FormerSecret{}) {
			t.Errorf("a former secret stays: %+v", c.Former)
		}
		return c, shown
	}
	_, first := rotate(Rotation{Overlap: 24 * time.Hour})
	used := store.now.Truncate(time.Minute)
	if err := store.RecordUses(t.Context(), []clientcfg.SecretUse{{ClientID: "shop", Digest: secret.DigestOf(first), At: used}}); err != nil {
		t.Fatal(err)
	}
	c, _ := rotate(Rotation{Overlap: time.Hour})
	if !c.Former.Used.Equal(used) {
		t.Errorf("the last use of the former secret is %v", c.Former.Used)
	}
	if c, _ = rotate(Rotation{}); !c.NotBefore.IsZero() {
		t.Errorf("revoked: %v", c.NotBefore)
	}
	rotate(Rotation{Overlap: time.Hour})
	if c, _ = rotate(Rotation{Revoke: true}); c.NotBefore.IsZero() {
		t.Error("not revoked")
	}
	var invalid *InvalidError
	for _, r := range []Rotation{{Overlap: -1}, {Overlap: MaxOverlap + 1}, {Overlap: time.Hour, Revoke: true}} {
		if _, _, err := RotateSecret(t.Context(), store, "shop", r); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A new password has to be as good as a first one; a bad one changes nothing.
func TestSetPassword(t *testing.T) {
	store := newTimed(t)
	if _, err := CreateUser(t.Context(), store, "ada", testPassword, clientcfg.ReadAccess, noon); err != nil {
		t.Fatal(err)
	}
	verify := func(password string) (grants.User, bool) {
		t.Helper()
		u, err := store.User(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		ok, err := secret.NewPasswords(secret.PasswordOptions{}).Verify(t.Context(), u.PasswordHash, password)
		return u, ok && err == nil
	}
	var invalid *InvalidError
	for _, bad := range []string{"", "2short!", "password2026", "ada-ada-ada", testPassword + "\n"} {
		if _, err := SetPassword(t.Context(), store, "ada", bad); !errors.As(err, &invalid) {
			t.Errorf("SetPassword(%q) = %v", bad, err)
		}
	}
	if u, ok := verify(testPassword); !ok || !u.NotBefore.IsZero() {
		t.Errorf("a refused password changed %+v", u)
	}
	if _, err := SetPassword(t.Context(), store, "nobody", "another staple"); !errors.Is(err, grants.ErrNotFound) {
		t.Errorf("SetPassword(unknown) = %v", err)
	}
	until, err := SetPassword(t.Context(), store, "ada", "another staple for ada")
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := verify("another staple for ada"); !ok || !u.NotBefore.Equal(until) || u.Operator != clientcfg.ReadAccess {
		t.Errorf("%+v, verified %v", u, ok)
	}
}
