package httpapi_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// daemon is a client without users.
func daemon() *clientcfg.Client {
	return &clientcfg.Client{
		ID: "daemon", Grants: []clientcfg.Grant{clientcfg.ClientCredentials},
		SecretDigest: secret.DigestOf(secretOf), Scopes: []string{"orders:read", "orders:write"},
	}
}

const password = testworld.Password

type worldEdit func(*grants.Options, *httpapi.Options)

// newWorld serves real grants on a real store over TCP. alice and bob can sign in with [password].
func newWorld(tb testing.TB, list testworld.Clients, edits ...worldEdit) *httptest.Server {
	tb.Helper()
	ctx := context.Background()
	store := testworld.OpenStore(tb, filepath.Join(tb.TempDir(), "oauth.db"))
	testworld.AddUsers(tb, store.Users, time.Now())
	list.MustBeValid(tb)

	srv := httptest.NewUnstartedServer(nil)
	issuer := "http://" + srv.Listener.Addr().String()
	ring, err := keys.Open(ctx, store, keys.Options{Issuer: issuer})
	check.OK(tb, err)
	mac, err := keys.OpenMAC(ctx, store, keys.Secrets{}, slog.New(slog.DiscardHandler))
	check.OK(tb, err)
	behind := grants.Options{Issuer: issuer, Clients: list, Store: grants.NewRepository(store), Users: store.Users, Stored: store, Signer: ring, Deriver: mac}
	behind.SignIn.Passwords = testworld.Passwords(secret.PasswordOptions{})
	options := httpapi.Options{Issuer: issuer, Keys: ring}
	for _, edit := range edits {
		edit(&behind, &options)
	}
	service, err := grants.New(behind)
	check.OK(tb, err)
	options.Service = service
	srv.Config.Handler, err = httpapi.New(options)
	check.OK(tb, err)
	srv.Start()
	tb.Cleanup(srv.Close)
	return srv
}
