package tokenclient_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

func TestReuseNeedsNoServer(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = t.TempDir()
	first := token(t, c, r, tokenclient.Issued)
	f.Close()
	second := token(t, c, r, tokenclient.Reused)
	check.Equal(t, "token", second.Token, first.Token)
	check.Equal(t, "claims", string(second.Claims.Payload), string(first.Claims.Payload))
	if second.Claims.Verified || second.Claims.Problem == "" {
		t.Errorf("verified without keys: %+v", second.Claims)
	}
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
		t.Run(name, func(t *testing.T) { token(t, c, r, tokenclient.Issued) })
	}
	r := base
	r.Scopes = []string{"write", "read", "write"}
	token(t, c, r, tokenclient.Reused) // the order of scopes means nothing
}

// Without the lock both would refresh with the same token, and the fake server
// would revoke the family, as a real one must.
func TestConcurrentRunsRefreshOnce(t *testing.T) {
	f := newFakeServer(t)
	r := request(f, clientcfg.Password)
	r.CacheDir = t.TempDir()
	token(t, newClient(t, f), r, tokenclient.Issued)
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
	check.Equal(t, "grants asked for", f.grants(), []string{"password", "refresh_token"})
	check.Equal(t, "tokens", slices.Compact(tokens), tokens[:1])
}

func TestCacheFileIsPrivate(t *testing.T) {
	f := newFakeServer(t)
	c := newClient(t, f)
	r := request(f, clientcfg.ClientCredentials)
	r.CacheDir = filepath.Join(t.TempDir(), "made")
	file := token(t, c, r, tokenclient.Issued).CacheFile
	for path, want := range map[string]os.FileMode{file: 0o600, r.CacheDir: os.ModeDir | 0o700} {
		info, err := os.Stat(path)
		check.OK(t, err)
		if info.Mode()&^os.ModeSetgid != want { // a directory may inherit that bit
			t.Errorf("the mode of %s is %v, want %v", path, info.Mode(), want)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o700} {
		check.OK(t, os.Chmod(file, mode))
		_, err := c.Token(t.Context(), r)
		check.ErrorIs(t, err, tokenclient.ErrExposed)
	}
	if left, err := filepath.Glob(filepath.Join(r.CacheDir, ".token-*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %q, %v", left, err)
	}
}

func TestCacheFileThatCannotServe(t *testing.T) {
	cases := map[string]struct {
		make func(path string) error
		want string
	}{
		"damaged":           {func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }, "damaged; remove it"},
		"empty":             {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "damaged; remove it"},
		"a directory":       {func(path string) error { return os.Mkdir(path, 0o700) }, "not a small regular file"},
		"too large":         {func(path string) error { return os.WriteFile(path, make([]byte, 2<<20), 0o600) }, "not a small regular file"},
		"of another client": {func(path string) error { return os.WriteFile(path, []byte(`{"key":{"client_id":"theirs"}}`), 0o600) }, "theirs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			r := request(f, clientcfg.ClientCredentials)
			r.CacheFile = filepath.Join(t.TempDir(), "token.json")
			check.OK(t, tc.make(r.CacheFile))
			failsWith(t, newClient(t, f), r, tc.want)
			check.Equal(t, "grants asked for before the cache is known to work", f.grants(), []string{})
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
	got := token(t, c, r, tokenclient.Issued)
	if got.Token.AccessToken == "" || got.CacheFile != "" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(told, "not cached") || strings.Contains(told, got.Token.AccessToken) {
		t.Errorf("the notice is %q", told)
	}
}
