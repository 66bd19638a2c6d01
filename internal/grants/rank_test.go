package grants_test

import (
	"context"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
)

// rankedStore records the rank of the last call.
type rankedStore struct {
	grants.Store
	rank overload.Rank
}

func (s *rankedStore) Code(ctx context.Context, d secret.Digest) (grants.Code, error) {
	s.rank = overload.RankFrom(ctx)
	return s.Store.Code(ctx, d)
}

func (s *rankedStore) Family(ctx context.Context, d secret.Digest) (grants.Family, error) {
	s.rank = overload.RankFrom(ctx)
	return s.Store.Family(ctx, d)
}

func (s *rankedStore) Revoked(ctx context.Context, names ...string) (bool, error) {
	s.rank = overload.RankFrom(ctx)
	return s.Store.Revoked(ctx, names...)
}

func (s *rankedStore) User(ctx context.Context, name string) (grants.User, error) {
	s.rank = overload.RankFrom(ctx)
	return s.Store.User(ctx, name)
}

// TestStoreIsCalledWithTheRank: store calls carry the rank that the shedder gave the request, for
// priority in the store's queue.
func TestStoreIsCalledWithTheRank(t *testing.T) {
	w := newWorld(t)
	code, tokens := w.code("shop"), w.tokens("shop")
	store := &rankedStore{}
	w.reopen(func(o *grants.Options) { store.Store, o.Store, o.Shedder = o.Store, store, &doorkeeper{} })
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
			_, _, err := w.service.SignIn(t.Context(), grants.SignIn{Username: "alice", Password: password})
			return err
		}},
		{"revocation", func() error { return w.service.Revoke(t.Context(), query) }},
	} {
		store.rank = 0
		check.OK(t, tt.send(), tt.name)
		check.Equal(t, tt.name, store.rank, overload.Rank(1)) // the rank from doorkeeper
	}
}
