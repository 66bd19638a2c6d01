package registry

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestEditInPlace: an edit that takes an item out of a list where it is changes neither what the trail says
// of before, nor whether operators would be locked out.
func TestEditInPlace(t *testing.T) {
	store := openTestStore(t)
	ops := clientcfg.Client{ID: "ops"}
	clientcfg.MakeOperator(&ops)
	scopes := slices.Clone(ops.Scopes)
	_, _, err := CreateClient(t.Context(), store, ops, noon)
	check.OK(t, err)
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
