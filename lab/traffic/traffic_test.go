package traffic_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/secret"
	"oauth-server/lab/traffic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDemoClientsCanBeRegistered(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range traffic.DemoClients() {
		c := m.Registration()
		c.SecretDigest[0] = 1
		if err := c.Validate(); err != nil {
			t.Errorf("%s cannot be registered: %v", m.ID, err)
		}
		if seen[m.ID] {
			t.Errorf("%s is there twice", m.ID)
		}
		seen[m.ID] = true
		for s := range 120 {
			if rate := m.Rate(time.Duration(s) * time.Second); rate < 0 || math.IsNaN(rate) {
				t.Errorf("%s: the rate after %d s is %v", m.ID, s, rate)
			}
		}
	}
}

func TestRegister(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	store, err := app.OpenStore(t.Context(), config.Store{Embedded: &config.Embedded{Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	clients := []traffic.Client{{ID: "app", Grant: clientcfg.RefreshToken, Users: []string{"ada"}}}
	first, second := register(t, store, clients), register(t, store, clients)
	if first.Secrets["app"] == second.Secrets["app"] || first.Passwords["ada"] == second.Passwords["ada"] {
		t.Error("registered again, a secret or a password stays the same")
	}

	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := second.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	read, err := traffic.ReadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second, read); diff != "" {
		t.Errorf("the file holds other credentials (-want +got):\n%s", diff)
	}
	c, err := store.Client(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	if c.SecretDigest != secret.DigestOf(second.Secrets["app"]) {
		t.Error("the store holds another secret than the newest")
	}
}

func register(t *testing.T, store app.Store, clients []traffic.Client) traffic.Credentials {
	t.Helper()
	credentials, err := traffic.Register(t.Context(), store, clients, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return credentials
}

// tokenServer answers token requests as the server does, and counts the refresh tokens
// presented, and those presented again.
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
		Clients: []traffic.Client{
			{ID: "app", Grant: clientcfg.RefreshToken, Users: []string{"ada", "grace"}, Rate: steady(500)},
			{ID: "shop", Grant: clientcfg.ClientCredentials, Rate: steady(500)},
			{ID: "liar", Grant: clientcfg.ClientCredentials, Rate: steady(500), Wrong: 1},
		},
	})
	if n := replayed.Load(); n > 0 {
		t.Errorf("%d refresh tokens were used twice", n)
	}
	if summary["shop"]["200"] == 0 || summary["liar"]["401"] == 0 {
		t.Errorf("want tokens for shop and 401 for liar, got\n%s", summary)
	}
	if n := summary.Total("200"); n < 20 {
		t.Errorf("%d requests were answered with 200, want at least 20", n)
	}
	if !strings.Contains(summary.String(), "shop") {
		t.Errorf("the summary has no line for shop:\n%s", summary)
	}
}

func TestRunEndsWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		summary := traffic.Run(ctx, traffic.Options{
			Targets: []string{"http://127.0.0.1:1"},
			Clients: []traffic.Client{{ID: "shop", Grant: clientcfg.ClientCredentials, Rate: steady(5)}},
		})
		if n := summary["shop"]["error"]; n < 180 || n > 420 {
			t.Errorf("%d requests failed in a minute at 5 a second, want about 300", n)
		}
	})
}

// With the same seed, a second run sends the same requests at the same times.
func TestTheSameSeedIsTheSameTraffic(t *testing.T) {
	first, second, other := arrivals(t, 1), arrivals(t, 1), arrivals(t, 2)
	if len(first) < 100 {
		t.Fatalf("%d requests in a minute, want at least 100", len(first))
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second run differs (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("another seed is the same traffic")
	}
}

// arrivals returns when the requests of a client are sent in a minute.
func arrivals(t *testing.T, seed uint64) (at []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		traffic.Run(ctx, traffic.Options{
			Targets: []string{"http://127.0.0.1:1"}, Seed: seed,
			Clients: []traffic.Client{{ID: "shop", Grant: clientcfg.ClientCredentials, Rate: func(since time.Duration) float64 {
				at = append(at, since) // it is asked for once before each request
				return 5
			}}},
		})
	})
	return at
}
