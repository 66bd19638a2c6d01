package grants_test

import (
	"testing"

	"oauth-server/internal/accounts"
	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/overload"
)

// TestStoreIsCalledWithTheRank: store calls carry the rank that the shedder gave the request, for
// priority in the store's queue.
func TestStoreIsCalledWithTheRank(t *testing.T) {
	w := newWorld(t)
	code, tokens := w.code("shop"), w.tokens("shop")
	store := w.fail(func(o *grants.Options) { o.Shedder = &doorkeeper{} })
	query := grants.TokenQuery{Credentials: w.credentials("shop"), Token: tokens.AccessToken}
	token := func(req grants.TokenRequest) func() error {
		return func() error { _, err := w.token("shop", req); return err }
	}
	for _, tt := range []struct {
		name string
		send func() error
	}{
		{"code", token(w.redemption("shop", code))},
		{"refresh token", token(refreshing(tokens.RefreshToken))},
		{"password", token(grants.TokenRequest{GrantType: "password", Username: "alice", Password: password})},
		{"introspection", func() error { _, err := w.service.Introspect(t.Context(), query); return err }},
		{"sign-in", func() error {
			_, _, err := w.service.SignIn(t.Context(), accounts.SignIn{Username: "alice", Password: password})
			return err
		}},
		{"revocation", func() error { return w.service.Revoke(t.Context(), query) }},
	} {
		store.Rank = 0
		check.OK(t, tt.send(), tt.name)
		check.Equal(t, tt.name, store.Rank, overload.Rank(1)) // the rank from doorkeeper
	}
}
