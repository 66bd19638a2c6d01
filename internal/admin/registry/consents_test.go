package registry

import (
	"errors"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	datastore "oauth-server/internal/store"
)

func agree(t *testing.T, store *testworld.Store, username, clientID string) grants.Agreement {
	t.Helper()
	u, err := store.User(t.Context(), username)
	check.OK(t, err)
	c, err := store.Client(t.Context(), clientID)
	check.OK(t, err)
	a := grants.Agreement{
		Username: username, ClientID: clientID, ID: username + "-" + clientID, Scopes: []string{"read"}, AgreedAt: noon, UsedAt: noon,
		ExpiresAt: noon.Add(time.Hour), ClientStamp: c.Stamp, UserStamp: u.Stamp,
	}
	check.OK(t, store.PutAgreement(t.Context(), a))
	return a
}

// TestConsentsThatHold: the list has exactly the consents that would give a client a code without
// asking.
func TestConsentsThatHold(t *testing.T) {
	ctx, store := t.Context(), openTestStore(t)
	for _, name := range []string{"ada", "bob"} {
		addUser(t, store, name)
	}
	for _, id := range []string{"deleted", "kept", "kept2", "revoked", "withdrawn"} {
		addClient(t, store, clientcfg.Client{ID: id})
		agree(t, store, "ada", id)
	}
	agree(t, store, "bob", "kept")
	now := noon
	r := New(Options{Store: store, Events: store, Now: func() time.Time { return now }})
	_, err := r.RevokeClient(ctx, "revoked")
	check.OK(t, err)
	check.OK(t, r.DeleteClient(ctx, "deleted"))
	check.OK(t, r.WithdrawConsent(ctx, "ADA", "withdrawn"))
	list := func(typed string) string {
		t.Helper()
		found, err := r.Consents(ctx, typed)
		user, all := found.Username, found.Consents
		check.OK(t, err)
		ids := []string{user}
		for _, c := range all {
			ids = append(ids, c.ClientID)
		}
		return strings.Join(ids, " ")
	}
	check.Equal(t, "listed", list("Ada"), "ada kept kept2")
	_, err = r.RevokeUser(ctx, "bob")
	check.OK(t, err)
	check.Equal(t, "after a revocation of the user", list("bob"), "bob")
	now = now.Add(time.Hour)
	check.Equal(t, "expired", list("ada"), "ada")

	for name, wanted := range map[string]error{"ada": ErrNoConsent, "nobody": datastore.ErrNotFound} {
		check.ErrorIs(t, r.WithdrawConsent(ctx, name, "withdrawn"), wanted)
	}
	_, err = r.Consents(ctx, "nobody")
	check.ErrorIs(t, err, datastore.ErrNotFound)
	events, err := store.Events(ctx, clientcfg.EventQuery{Target: "users/ada"})
	check.OK(t, err)
	check.Equal(t, "events", len(events), 1)
	check.Equal(t, "event", events[0].Action+" "+string(events[0].Before), `withdraw_consent {"client_id":"withdrawn"}`)
}

// TestWithdrawalOutlastsEveryLifetime: a command that opens the store does not know the servers'
// lifetimes. So the revocation lasts for the longest configurable lifetime.
func TestWithdrawalOutlastsEveryLifetime(t *testing.T) {
	ctx, store := t.Context(), openTestStore(t)
	addUser(t, store, "ada")
	addClient(t, store, clientcfg.Client{ID: "shop"})
	a := agree(t, store, "ada", "shop")
	check.OK(t, New(Options{Store: store, Now: func() time.Time { return noon }}).WithdrawConsent(ctx, "ada", "shop"))
	const year = 365 * 24 * time.Hour
	_, err := store.Sweep(ctx, noon.Add(10*year+30*24*time.Hour))
	check.OK(t, err)
	revoked, err := store.Revoked(ctx, a.RevocationNames()...)
	check.OK(t, err)
	check.Equal(t, "revoked", revoked, true)
	_, err = store.Agreement(ctx, "ada", "shop")
	check.Equal(t, "the agreement is gone", errors.Is(err, datastore.ErrNotFound), true)
}
