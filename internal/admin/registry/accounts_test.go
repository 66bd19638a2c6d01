package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict/fielderr"
)

func TestCreateClientChoosesTheUsualGrants(t *testing.T) {
	store := openTestStore(t)
	code := []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken}
	tests := []struct {
		name string
		spec clientcfg.Client
		want []clientcfg.Grant
	}{
		{"machine", clientcfg.Client{}, []clientcfg.Grant{clientcfg.ClientCredentials}},
		{"web", clientcfg.Client{RedirectURIs: []string{"https://app.example.com/cb"}}, code},
		{"native", clientcfg.Client{Public: true, RedirectURIs: []string{"http://127.0.0.1/cb"}}, code},
		{"as given", clientcfg.Client{Grants: []clientcfg.Grant{clientcfg.Password}}, []clientcfg.Grant{clientcfg.Password}},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.ID = strings.Repeat("c", i+1)
			made, shown, err := CreateClient(t.Context(), store, tt.spec, noon)
			check.OK(t, err)
			if !slices.Equal(made.Grants, tt.want) {
				t.Errorf("grants %v, want %v", made.Grants, tt.want)
			}
			if made.Public != (shown == "") || (!made.Public && !made.SecretDigest.Matches(shown)) {
				t.Errorf("public %v with secret %q", made.Public, shown)
			}
		})
	}
}

// contested is a store with one concurrent change of the client before the first change.
type contested struct {
	*testworld.Store
	lost bool
}

func (c *contested) UpdateClient(ctx context.Context, cl clientcfg.Client, e clientcfg.Event) error {
	if !c.lost {
		c.lost = true
		other := cl
		other.Name = "renamed meanwhile"
		if err := c.Store.UpdateClient(ctx, other, clientcfg.Event{}); err != nil {
			return err
		}
	}
	return c.Store.UpdateClient(ctx, cl, e)
}

// TestContestedChange: a change keeps a concurrent change that came first, and is recorded once.
func TestContestedChange(t *testing.T) {
	store := &contested{Store: openTestStore(t)}
	addClient(t, store, clientcfg.Client{ID: "shop"})
	_, fresh, err := New(Options{Store: store, Events: store}).AddSecret(t.Context(), "shop", NewSecret{})
	check.OK(t, err)
	c, err := FindClient(t.Context(), store, "shop")
	if err != nil || c.Name != "renamed meanwhile" || !c.SecretDigest.Matches(fresh) {
		t.Errorf("%+v, %v", c, err)
	}
	events, err := store.Events(t.Context(), clientcfg.EventQuery{})
	check.OK(t, err)
	check.Equal(t, "events", len(events), 1)
}

func TestCreateUser(t *testing.T) {
	store := openTestStore(t)
	addUser(t, store, "ada")
	u, err := store.User(t.Context(), "ada")
	check.OK(t, err)
	if ok, err := secret.NewPasswords(secret.PasswordOptions{}).Verify(t.Context(), u.PasswordHash, testPassword); !ok || err != nil {
		t.Errorf("the password does not verify: %v", err)
	}
	longest := strings.Repeat("a", username.MaxLength)
	if _, err := CreateUser(t.Context(), store, longest, testPassword, clientcfg.NoAccess, noon); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	for _, bad := range []struct{ name, password string }{
		{"", testPassword},
		{" ada", testPassword},
		{"a\x00b", testPassword},
		{longest + "a", testPassword},
		{"bob", ""},
		{"bob", "2short!"},
		{"bob", "password2026"},
		{"bobby.tables", "Bobby-Tables1"},
		{"bob", testPassword + "\ntwo lines"},
		{"bob", testPassword + "\xff"},
	} {
		var invalid fielderr.Errors
		if _, err := CreateUser(t.Context(), store, bad.name, bad.password, clientcfg.NoAccess, noon); !errors.As(err, &invalid) {
			t.Errorf("CreateUser(%q, %q) = %v", bad.name, bad.password, err)
		}
	}
}
