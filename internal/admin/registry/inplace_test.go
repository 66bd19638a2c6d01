package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict/fielderr"
)

// TestEditInPlace: an edit that removes a list item in place affects neither the Before value in
// the trail nor the lockout check.
func TestEditInPlace(t *testing.T) {
	store := openTestStore(t)
	ops := clientcfg.Client{ID: "ops"}
	clientcfg.MakeOperator(&ops)
	scopes := slices.Clone(ops.Scopes)
	addClient(t, store, ops)
	remove := func(scope string) error {
		_, err := New(Options{Store: store, Events: store}).ChangeClient(t.Context(), "ops", func(c *clientcfg.Client) error {
			c.Scopes = slices.DeleteFunc(c.Scopes, func(s string) bool { return s == scope })
			return nil
		})
		return err
	}
	var lockOut *LockOutError
	if err := remove(clientcfg.ScopeRegistrationsWrite); !errors.As(err, &lockOut) {
		t.Errorf("error %v, want a *LockOutError", err)
	}
	check.OK(t, remove(scopes[0]))
	events, err := store.Events(t.Context(), clientcfg.EventQuery{Target: "clients/ops"})
	check.OK(t, err)
	check.Equal(t, "events", len(events), 1)
	if text := string(events[0].Before); !strings.Contains(text, `"`+strings.Join(scopes, " ")+`"`) {
		t.Errorf("before: %s, want the scopes %q", text, scopes)
	}
}

// TestNothingChanged: an edit without effect is not recorded, and does not change the version.
func TestNothingChanged(t *testing.T) {
	store := openTestStore(t)
	r := New(Options{Store: store, Events: store})
	made, _, err := r.CreateClient(t.Context(), clientcfg.Client{ID: "shop", Scopes: []string{"a"}})
	check.OK(t, err)
	got, err := r.ChangeClient(t.Context(), "shop", func(c *clientcfg.Client) error {
		c.Scopes, c.Audience = []string{"a"}, []string{}
		return nil
	})
	check.OK(t, err)
	check.Equal(t, "version", got.Version, made.Version)
	_, err = r.CreateUser(t.Context(), NewUser{Name: "ada", Password: testPassword, Operator: clientcfg.ReadAccess})
	check.OK(t, err)
	for _, access := range []clientcfg.Access{clientcfg.ReadAccess, clientcfg.WriteAccess, clientcfg.WriteAccess} {
		u, err := r.SetOperator(t.Context(), "ada", access)
		check.OK(t, err)
		check.Equal(t, "access", u.Operator, access)
	}
	events, err := store.Events(t.Context(), clientcfg.EventQuery{})
	check.OK(t, err)
	var recorded []string
	for _, e := range events {
		recorded = append(recorded, e.Action+" "+e.Target)
	}
	slices.Sort(recorded)
	check.Equal(t, "events", recorded, []string{"create clients/shop", "create users/ada", "operator users/ada"})
}

// TestOpenIDIsNotAdded: no change registers a scope that every request is refused for.
func TestOpenIDIsNotAdded(t *testing.T) {
	store := openTestStore(t)
	addClient(t, store, clientcfg.Client{ID: "shop"})
	set := func(c *clientcfg.Client) error {
		c.Name, c.Scopes = "Shop", []string{"read", clientcfg.ScopeOpenID}
		return nil
	}
	var invalid fielderr.Errors
	if _, err := on(store).ChangeClient(t.Context(), "shop", set); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "scope: openid") {
		t.Errorf("error %v, want fielderr.Errors about it", err)
	}
}
