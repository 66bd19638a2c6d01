package httpapi_test

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/embedded"
)

// clients is a directory that tests write into before they start.
type clients map[string]*clientcfg.Client

func (c clients) Client(id string) (*clientcfg.Client, bool) {
	found, ok := c[id]
	return found, ok
}

const password = "correct horse battery staple"

// newWorld serves real grants on a real store over TCP; alice and bob can sign
// in with [password].
func newWorld(tb testing.TB, list clients, edits ...func(*httpapi.Options)) *httptest.Server {
	tb.Helper()
	ctx := context.Background()
	store, err := embedded.Open(filepath.Join(tb.TempDir(), "oauth.db"), embedded.Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, store.Close()) })
	hash, err := secret.NewPasswords(secret.PasswordOptions{}).Hash(ctx, password)
	require.NoError(tb, err)
	for _, name := range []string{"alice", "bob"} {
		require.NoError(tb, store.CreateUser(ctx, grants.User{Name: name, PasswordHash: hash, CreatedAt: time.Now()}))
	}
	for _, c := range list {
		require.NoError(tb, c.Validate())
	}

	srv := httptest.NewUnstartedServer(nil)
	issuer := "http://" + srv.Listener.Addr().String()
	ring, err := keys.Open(ctx, store, keys.Options{Issuer: issuer})
	require.NoError(tb, err)
	service, err := grants.New(grants.Options{Issuer: issuer, Clients: list, Store: store, Signer: ring})
	require.NoError(tb, err)
	options := httpapi.Options{
		Issuer: issuer, Tokens: service, Authorizations: service, Sessions: service, Inspector: service, Keys: ring,
	}
	for _, edit := range edits {
		edit(&options)
	}
	srv.Config.Handler, err = httpapi.New(options)
	require.NoError(tb, err)
	srv.Start()
	tb.Cleanup(srv.Close)
	return srv
}
