package admin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oauth-server/internal/admin"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// TestLocalKey: it makes its sender an operator on this machine only.
func TestLocalKey(t *testing.T) {
	w := newInstance(t, "i-1", openStore(t), file(), func(o *admin.Options) { o.LocalToken = "local-key" })
	for _, tt := range []struct {
		token, remote, operator string
		want                    int
		who                     string
	}{
		{"local-key", "127.0.0.1:1", "me@here", http.StatusOK, "me@here"},
		{"local-key", "[::1]:1", "", http.StatusOK, "local"},
		{"local-key", "[::ffff:127.0.0.1]:1", strings.Repeat("x", 201), http.StatusOK, "local"},
		{"local-key", "127.0.0.1:1", "a\tb", http.StatusOK, "local"},
		{"local-key", "192.0.2.1:1", "me@here", http.StatusUnauthorized, ""},
		{"local-kex", "127.0.0.1:1", "me@here", http.StatusUnauthorized, ""},
		{"local-", "127.0.0.1:1", "me@here", http.StatusUnauthorized, ""},
	} {
		rec := httptest.NewRecorder()
		w.localAs(tt.operator, rec, http.MethodPost, "/users/ada/unlock", tt.remote, tt.token)
		check.Equal(t, tt.token+" from "+tt.remote, rec.Code, tt.want)
		if tt.who == "" {
			continue
		}
		events, err := w.store.Events(t.Context(), clientcfg.EventQuery{Limit: 1})
		check.OK(t, err)
		check.Equal(t, "who", events[0].Actor.Store, tt.who)
	}
	w = newWorld(t) // without a key
	rec := httptest.NewRecorder()
	w.local(rec, http.MethodPost, "/users/ada/unlock", "127.0.0.1:1", "")
	check.Equal(t, "an empty key", rec.Code, http.StatusUnauthorized)
}

// TestOperatorOfTheStore: a command's own handler needs no token, serves only clients and users,
// and names the operator in the trail.
func TestOperatorOfTheStore(t *testing.T) {
	store := openStore(t)
	api, err := admin.New(admin.Options{Operator: "me@here", Registry: store, Events: store})
	check.OK(t, err)
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/clients", http.StatusOK},
		{http.MethodGet, "/clients/shop", http.StatusOK},
		{http.MethodGet, "/clients/shop/limits", http.StatusOK},
		{http.MethodPost, "/clients/shop/revoke", http.StatusOK},
		{http.MethodGet, "/policies/shop", http.StatusNotFound},
		{http.MethodGet, "/backup", http.StatusNotFound},
	} {
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), tt.method, "/admin/v1"+tt.path, nil))
		check.Equal(t, tt.path, rec.Code, tt.want)
	}
	events, err := store.Events(t.Context(), clientcfg.EventQuery{Target: "clients/shop", Limit: 1})
	check.OK(t, err)
	check.Equal(t, "who", events[0].Actor, clientcfg.Actor{Store: "me@here"})
}
