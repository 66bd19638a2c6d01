package registry

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	datastore "oauth-server/internal/store"
)

// pausing is a store that pauses between the read and the write of a change of a user.
type pausing struct {
	*testworld.Store
	between func()
}

func (s *pausing) User(ctx context.Context, name string) (accounts.User, error) {
	u, err := s.Store.User(ctx, name)
	s.between()
	return u, err
}

// TestSessionBetweenTwoRevocations: a session with the old password, from a sign-in between the
// read and the write of a new password and after another revocation, ends with the new password.
//
// Attack (revocation): A session outlives a password change. A sign-in with the old password
// ends with the new one.
func TestSessionBetweenTwoRevocations(t *testing.T) {
	const other = "another staple for ada"
	store := openTestStore(t)
	addUser(t, store, "ada")
	ring, err := keys.Open(t.Context(), store, keys.Options{Issuer: "https://auth.example.com"})
	check.OK(t, err)
	mac, err := keys.OpenMAC(t.Context(), store, keys.Secrets{}, slog.New(slog.DiscardHandler))
	check.OK(t, err)
	service, err := grants.New(grants.Options{
		Issuer: "https://auth.example.com", Clients: testworld.Clients{}, Store: grants.NewRepository(store), Users: store.Users, Stored: store, Signer: ring, Deriver: mac,
	})
	check.OK(t, err)
	signIn := func(password string) (cookie string) {
		t.Helper()
		cookie, _, err := service.SignIn(t.Context(), accounts.SignIn{Username: "ada", Password: password})
		check.OK(t, err)
		if _, err = service.Session(t.Context(), cookie); err != nil {
			t.Fatalf("the session does not begin: %v", err)
		}
		return cookie
	}
	var cookie string
	paused := &pausing{Store: store, between: func() {
		if err := RevokeUser(t.Context(), store, "ada"); err != nil {
			t.Error(err)
		}
		cookie = signIn(testPassword)
	}}
	check.OK(t, SetPassword(t.Context(), paused, "ada", other))
	_, err = service.Session(t.Context(), cookie)
	check.ErrorIs(t, err, accounts.ErrNoSession)
	signIn(other)
}

// pausingClients is a store that pauses between the read and the write of a change of a client.
type pausingClients struct {
	*testworld.Store
	between func()
}

func (s *pausingClients) Client(ctx context.Context, id string) (clientcfg.Client, error) {
	c, err := s.Store.Client(ctx, id)
	s.between()
	return c, err
}

// TestChangeOfANamesake: if a client is deleted and created again between the read and the write of
// a change, the new client stays. Its secret is valid, and the deleted client's is not.
func TestChangeOfANamesake(t *testing.T) {
	for name, change := range map[string]func(Store) error{
		"revoke":          func(s Store) error { _, err := RevokeClient(t.Context(), s, "shop"); return err },
		"resource server": func(s Store) error { return SetResourceServer(t.Context(), s, "shop", true) },
	} {
		store := openTestStore(t)
		_, deleted := addClient(t, store, clientcfg.Client{ID: "shop"})
		var fresh clientcfg.Client
		var shown string
		paused := &pausingClients{Store: store}
		paused.between = func() {
			paused.between = func() {}
			err := store.DeleteClient(t.Context(), "shop", clientcfg.Event{})
			if err == nil {
				fresh, shown, err = CreateClient(t.Context(), store, clientcfg.Client{ID: "shop"}, noon)
			}
			if err != nil {
				t.Error(err)
			}
		}
		check.OK(t, change(paused), name)
		c, err := store.Client(t.Context(), "shop")
		if err != nil || c.Stamp.ID != fresh.Stamp.ID || !c.SecretDigest.Matches(shown) || c.SecretDigest.Matches(deleted) {
			t.Errorf("%s: %+v, %v; the new one is %+v", name, c, err, fresh)
		}
	}
}

// TestDeletionOfAChangedClient: a concurrent change between the read and the deletion is checked,
// and a client that may no longer be deleted stays.
func TestDeletionOfAChangedClient(t *testing.T) {
	store := openTestStore(t)
	addClient(t, store, clientcfg.Client{ID: "shop"})
	paused := &pausingClients{Store: store}
	paused.between = func() {
		paused.between = func() {}
		check.OK(t, SetResourceServer(t.Context(), store, "shop", true))
	}
	refused := errors.New("a resource server")
	r := New(Options{Store: paused, IfClient: func(c *clientcfg.Client) error {
		if c.ResourceServer {
			return refused
		}
		return nil
	}})
	check.ErrorIs(t, r.DeleteClient(t.Context(), "shop"), refused)
	_, err := store.Client(t.Context(), "shop")
	check.OK(t, err)
	check.OK(t, on(store).DeleteClient(t.Context(), "shop"))
}

// TestRevocationsCount: each revocation increments the stamp's count and keeps its ID. No other
// change does.
func TestRevocationsCount(t *testing.T) {
	store := newTimed(t)
	c, err := FindClient(t.Context(), store, "shop")
	check.OK(t, err)
	check.OK(t, store.CreateUser(t.Context(), accounts.User{Name: "ada", Stamp: c.Stamp}, clientcfg.Event{}))
	for i, change := range []func() error{
		func() error { return SetResourceServer(t.Context(), store, "shop", false) },
		func() error { _, _, err := RotateSecret(t.Context(), store, "shop", NewSecret{}); return err },
		func() error { _, err := RevokeClient(t.Context(), store, "shop"); return err },
		func() error {
			_, _, err := RotateSecret(t.Context(), store, "shop", NewSecret{Revoke: true})
			return err
		},
	} {
		check.OK(t, change())
		now, err := FindClient(t.Context(), store, "shop")
		check.OK(t, err)
		check.Equal(t, "stamp", now.Stamp, secret.Stamp{ID: c.Stamp.ID, Count: 1 + max(int64(i)-1, 0)})
	}
	for i := range int64(2) {
		check.OK(t, RevokeUser(t.Context(), store, "ada"))
		u, err := store.User(t.Context(), "ada")
		check.OK(t, err)
		check.Equal(t, "stamp", u.Stamp, secret.Stamp{ID: c.Stamp.ID, Count: 2 + i})
	}
	check.ErrorIs(t, RevokeUser(t.Context(), store, "nobody"), datastore.ErrNotFound)
}
