package registry

import (
	"errors"
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict/fielderr"
)

// Attack (usernames): Accounts that differ in case, width or composition. Names are stored in
// one canonical form. Also username.FuzzCanonical.
func TestNewUsersHaveCanonicalNames(t *testing.T) {
	store := openTestStore(t)
	check.OK(t, store.CreateUser(t.Context(), accounts.User{Name: "bob", CreatedAt: noon}, clientcfg.Event{}))
	addClient(t, store, clientcfg.Client{ID: "shop"})
	create := func(name string) (User, error) {
		return CreateUser(t.Context(), store, name, testPassword, clientcfg.NoAccess, noon)
	}
	u, err := create("A\u0308DA@Example.com")
	check.OK(t, err)
	check.Equal(t, "name", u.Username, "\u00e4da@example.com")
	_, err = store.User(t.Context(), u.Username)
	check.OK(t, err)

	for _, name := range []string{"bob", "BOB", "Bob", "\u00c4da@example.com"} {
		_, err = create(name)
		check.ErrorIs(t, err, accounts.ErrExists)
	}
	_, err = create("SHOP")
	check.ErrorIs(t, err, ErrNameOfClient)
	for _, name := range []string{"ada lovelace", "\u265a", "p\u0430ul", "ada\u200b"} {
		var invalid fielderr.Errors
		if _, err := create(name); !errors.As(err, &invalid) {
			t.Errorf("CreateUser(%+q) = %v, want that it is invalid", name, err)
		}
	}
}
