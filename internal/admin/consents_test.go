package admin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/store"
)

// withoutAgreements is a store with unreachable agreements.
type withoutAgreements struct{ *shared }

func (w withoutAgreements) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	if t.Name == "agreements" {
		return errors.New("the store is away")
	}
	return w.shared.List(ctx, t, q, each)
}

func TestConsentsAreListedAndWithdrawn(t *testing.T) {
	w := newWorld(t)
	agreed := grants.Agreement{
		Username: "ada", ClientID: "shop", ID: "id", Scopes: []string{"orders:read"},
		AgreedAt: noon, UsedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
	check.OK(t, w.store.PutAgreement(t.Context(), agreed))
	a := w.get("/users/ADA/consents") // in any case of letters
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
	revoked, err := w.store.Revoked(t.Context(), agreed.RevocationNames()...)
	check.OK(t, err)
	equal(t, "what came of it is revoked", revoked, true)
	equal(t, "entry", w.get("/audit?target=users/ada").at("entries", 0, "action"), any("withdraw_consent"))

	w = newInstance(t, "i-2", w.store, file(), func(o *admin.Options) { o.Registry = withoutAgreements{w.store} })
	equal(t, "away", w.send(request{method: http.MethodGet, path: "/users/ada/consents", token: reader}).status, http.StatusServiceUnavailable)
}
