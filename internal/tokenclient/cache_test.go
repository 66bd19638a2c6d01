package tokenclient_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/tokenclient"
)

func TestReuseNeedsNoServer(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = t.TempDir()
	first, err := c.Token(t.Context(), r)
	require.NoError(t, err)
	f.Close()
	second, err := c.Token(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, tokenclient.Reused, second.Origin)
	require.Equal(t, first.Token, second.Token)
	require.False(t, second.Claims.Verified, "the keys could not be read")
	require.NotEmpty(t, second.Claims.Problem)
	require.Equal(t, string(first.Claims.Payload), string(second.Claims.Payload))
}

func TestCacheDirKeepsKeysApart(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	base := request(f, clientcfg.Password)
	base.CacheDir = t.TempDir()
	variants := map[string]func(r *tokenclient.Request){
		"as it is":       func(*tokenclient.Request) {},
		"another client": func(r *tokenclient.Request) { r.ClientID = "other" },
		"another user":   func(r *tokenclient.Request) { r.Username = "grace" },
		"another scope":  func(r *tokenclient.Request) { r.Scopes = []string{"read", "write"} },
		"another grant":  func(r *tokenclient.Request) { r.Grant = clientcfg.ClientCredentials },
	}
	for name, change := range variants {
		r := base
		change(&r)
		got, err := c.Token(t.Context(), r)
		require.NoError(t, err, name)
		require.Equal(t, tokenclient.Issued, got.Origin, name)
	}
	r := base
	r.Scopes = []string{"write", "read", "write"}
	got, err := c.Token(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, tokenclient.Reused, got.Origin, "the order of scopes means nothing")
}

// Without the lock both would refresh with the same token, and the fake server
// would revoke the family, as a real one must.
func TestConcurrentRunsRefreshOnce(t *testing.T) {
	f := newFakeServer(t)
	r := request(f, clientcfg.Password)
	r.CacheDir = t.TempDir()
	_, err := newClient(t, f).Token(t.Context(), r)
	require.NoError(t, err)
	f.advance(lifetime)
	var wg sync.WaitGroup
	tokens := make([]string, 8)
	for i := range tokens {
		wg.Go(func() {
			if got, err := newClient(t, f).Token(t.Context(), r); err == nil {
				tokens[i] = got.Token.AccessToken
			} else {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{"password", "refresh_token"}, f.grants())
	for _, token := range tokens {
		require.Equal(t, tokens[0], token)
	}
}

func TestCacheFileIsPrivate(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = filepath.Join(t.TempDir(), "made")
	got, err := c.Token(t.Context(), r)
	require.NoError(t, err)
	info, err := os.Stat(got.CacheFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	dir, err := os.Stat(r.CacheDir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), dir.Mode().Perm())

	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o700} {
		require.NoError(t, os.Chmod(got.CacheFile, mode))
		_, err = c.Token(t.Context(), r)
		require.ErrorIs(t, err, tokenclient.ErrExposed, "mode %o", mode)
	}
	left, err := filepath.Glob(filepath.Join(r.CacheDir, ".token-*"))
	require.NoError(t, err)
	require.Empty(t, left, "temporary files")
}

func TestCacheFileThatCannotServe(t *testing.T) {
	cases := map[string]struct {
		make func(path string) error
		want string
	}{
		"damaged":           {func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }, "damaged, remove it"},
		"empty":             {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "damaged, remove it"},
		"a directory":       {func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"too large":         {func(path string) error { return os.WriteFile(path, make([]byte, 2<<20), 0o600) }, "sensible size"},
		"of another client": {func(path string) error { return os.WriteFile(path, []byte(`{"key":{"client_id":"theirs"}}`), 0o600) }, "theirs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			r := request(f, clientcfg.ClientCredentials)
			r.CacheFile = filepath.Join(t.TempDir(), "token.json")
			require.NoError(t, tc.make(r.CacheFile))
			_, err := newClient(t, f).Token(t.Context(), r)
			require.ErrorContains(t, err, tc.want)
			require.Empty(t, f.grants(), "nothing is asked before the cache is known to work")
		})
	}
}

func TestTokenIsHandedOverWhenItCannotBeKept(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheFile = filepath.Join(t.TempDir(), "token.json")
	f.answer = func(map[string]any) { // while the token is under way, its place is taken
		if err := os.MkdirAll(filepath.Join(r.CacheFile, "occupied"), 0o700); err != nil {
			t.Error(err)
		}
	}
	var told string
	c.Notify = func(message string) { told = message }
	got, err := c.Token(t.Context(), r)
	require.NoError(t, err)
	require.NotEmpty(t, got.Token.AccessToken)
	require.Empty(t, got.CacheFile)
	require.Contains(t, told, "not kept")
	require.NotContains(t, told, got.Token.AccessToken)
}
