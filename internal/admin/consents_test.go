package admin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"oauth-server/internal/admin"
	"oauth-server/internal/grants"
)

// consents are those of ada, who allows shop to read orders.
type consents struct{ withdrawn, away bool }

func (c *consents) Allowed(_ context.Context, username string) ([]grants.Allowed, error) {
	switch {
	case c.away:
		return nil, errors.New("the store is away")
	case username != "ada" || c.withdrawn:
		return nil, nil
	}
	return []grants.Allowed{{Agreement: grants.Agreement{
		Username: "ada", ClientID: "shop", Scopes: []string{"orders:read"}, AgreedAt: noon, UsedAt: noon, ExpiresAt: noon,
	}}}, nil
}

func (c *consents) Withdraw(_ context.Context, username, clientID string) error {
	if username != "ada" || clientID != "shop" || c.withdrawn {
		return grants.ErrNotFound
	}
	c.withdrawn = true
	return nil
}

func TestConsentsAreListedAndWithdrawn(t *testing.T) {
	kept := &consents{}
	w := newInstance(t, "i-1", openStore(t), file(), func(o *admin.Options) { o.Consents = kept })
	a := w.get("/users/ADA/consents") // in any case
	equal(t, "username", a.at("username"), any("ada"))
	equal(t, "client", a.at("consents", 0, "client_id"), any("shop"))
	equal(t, "scope", a.at("consents", 0, "scopes", 0), any("orders:read"))
	equal(t, "agreed", a.at("consents", 0, "agreed_at"), any("2026-03-01T12:00:00Z"))
	equal(t, "none", len(w.get("/users/rob/consents").at("consents").([]any)), 0)

	const path = "/users/ada/consents/shop"
	for _, tt := range []struct {
		method, path, token string
		want                int
	}{
		{http.MethodDelete, path, reader, http.StatusForbidden},
		{http.MethodDelete, path + "?force=1", writer, http.StatusUnprocessableEntity},
		{http.MethodDelete, "/users/ada/consents/app", writer, http.StatusNotFound},
		{http.MethodDelete, "/users/nobody/consents/shop", writer, http.StatusNotFound},
		{http.MethodGet, "/users/nobody/consents", reader, http.StatusNotFound},
		{http.MethodGet, "/users/%20/consents", reader, http.StatusNotFound},
		{http.MethodDelete, path, writer, http.StatusNoContent},
		{http.MethodDelete, path, writer, http.StatusNotFound},
	} {
		equal(t, tt.method+" "+tt.path, w.send(request{method: tt.method, path: tt.path, token: tt.token}).status, tt.want)
	}
	equal(t, "withdrawn", kept.withdrawn, true)
	equal(t, "entry", w.get("/audit?target=users/ada").at("entries", 0, "action"), any("withdraw_consent"))
	kept.away = true
	equal(t, "away", w.send(request{method: http.MethodGet, path: "/users/ada/consents", token: reader}).status, http.StatusServiceUnavailable)
}
