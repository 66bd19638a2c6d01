package mongo

import (
	"context"
	"errors"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// TestDatabaseWithoutItsData: an instance keeps the clients and policies that it knows when its database
// comes back empty, and follows it again once it is restored.
func TestDatabaseWithoutItsData(t *testing.T) {
	t.Parallel()
	s, _ := twoStores(t)
	shop := clientcfg.Client{ID: "shop", Grants: []clientcfg.Grant{clientcfg.ClientCredentials}, SecretDigest: secret.DigestOf("secret")}
	check.OK(t, s.CreateClient(t.Context(), shop))
	check.OK(t, change(t.Context(), s, 1))
	clients, err := clientcfg.NewSource(t.Context(), s, nil)
	check.OK(t, err)
	policies, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
	check.OK(t, err)
	known := func(want bool) {
		t.Helper()
		_, ok := clients.Client("shop")
		check.Equal(t, "the client is known", ok, want)
	}
	check.OK(t, s.db.Drop(t.Context()))
	for _, follow := range []func(context.Context) error{
		clients.Refresh, policies.Refresh,
		func(ctx context.Context) error { return clients.Renew(ctx, 0) },
	} {
		err := follow(t.Context())
		check.ErrorSays(t, err, "its data are lost, or it is another one")
		check.Equal(t, "all are read", errors.Is(err, clientcfg.ErrMarkLost), false)
	}
	known(true)
	check.Equal(t, "version of the policies", policies.Status().Version, int64(1))

	// It is restored as it was before there was the client.
	_, err = s.Migrate(t.Context())
	check.OK(t, err)
	register(t, s, "other")
	check.OK(t, clients.Refresh(t.Context()))
	check.OK(t, policies.Refresh(t.Context()))
	known(false)
	check.Equal(t, "version of the policies", policies.Status().Version, int64(0))
}
