package traffic_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/secret"
	"oauth-server/tools/traffic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCastIsRegistrable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range traffic.Cast() {
		c := m.Registration()
		c.SecretDigest[0] = 1
		require.NoError(t, c.Validate(), m.ID)
		require.False(t, seen[m.ID], m.ID)
		seen[m.ID] = true
		for s := range 120 {
			require.GreaterOrEqual(t, m.Rate(time.Duration(s)*time.Second), 0.0, m.ID)
		}
	}
}

func TestRegister(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	store, err := app.OpenStore(t.Context(), config.Store{Embedded: &config.Embedded{Path: path}})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	cast := []traffic.Member{{ID: "app", Grant: clientcfg.RefreshToken, Users: []string{"ada"}}}
	first, err := traffic.Register(t.Context(), store, cast, time.Now())
	require.NoError(t, err)
	second, err := traffic.Register(t.Context(), store, cast, time.Now())
	require.NoError(t, err)
	require.NotEqual(t, first.Secrets["app"], second.Secrets["app"])
	require.NotEqual(t, first.Passwords["ada"], second.Passwords["ada"])

	file := filepath.Join(t.TempDir(), "credentials.json")
	require.NoError(t, second.WriteFile(file))
	read, err := traffic.ReadCredentials(file)
	require.NoError(t, err)
	require.Equal(t, second, read)
	c, err := app.FindClient(t.Context(), store, "app")
	require.NoError(t, err)
	require.Equal(t, secret.DigestOf(second.Secrets["app"]), c.SecretDigest)
}

// tokenServer answers as a server does; every refresh token works once.
func tokenServer(t *testing.T) (address string, refreshed, replayed *atomic.Int64) {
	t.Helper()
	refreshed, replayed = new(atomic.Int64), new(atomic.Int64)
	var issued atomic.Int64
	used := make(chan map[string]bool, 1)
	used <- map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id != "app" && id != "shop" || secret != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"invalid_client"}`))
			return
		}
		if token := r.PostFormValue("refresh_token"); token != "" {
			seen := <-used
			if seen[token] {
				replayed.Add(1)
			}
			seen[token] = true
			used <- seen
			refreshed.Add(1)
		}
		_, _ = w.Write([]byte(`{"refresh_token":"` + strconv.FormatInt(issued.Add(1), 10) + `"}`))
	}))
	t.Cleanup(server.Close)
	return server.URL, refreshed, replayed
}

func steady(perSecond float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return perSecond }
}

func TestRun(t *testing.T) {
	address, refreshed, replayed := tokenServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for refreshed.Load() < 20 && t.Context().Err() == nil {
			<-time.After(5 * time.Millisecond)
		}
	}()
	summary := traffic.Run(ctx, traffic.Options{
		Targets:     []string{address, address},
		Credentials: traffic.Credentials{Secrets: map[string]string{"app": "s3cret", "shop": "s3cret", "liar": "s3cret"}},
		Cast: []traffic.Member{
			{ID: "app", Grant: clientcfg.RefreshToken, Users: []string{"ada", "grace"}, Rate: steady(500)},
			{ID: "shop", Grant: clientcfg.ClientCredentials, Rate: steady(500)},
			{ID: "liar", Grant: clientcfg.ClientCredentials, Rate: steady(500), Wrong: 1},
		},
	})
	require.Zero(t, replayed.Load(), "a refresh token was used twice")
	require.Positive(t, summary["shop"]["200"])
	require.Positive(t, summary["liar"]["401"])
	require.GreaterOrEqual(t, summary.Total("200"), 20)
	require.Contains(t, summary.String(), "shop")
}

func TestRunEndsWithNobodyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		summary := traffic.Run(ctx, traffic.Options{
			Targets: []string{"http://127.0.0.1:1"},
			Cast:    []traffic.Member{{ID: "shop", Grant: clientcfg.ClientCredentials, Rate: steady(5)}},
		})
		require.InDelta(t, 300, summary["shop"]["error"], 120)
	})
}
