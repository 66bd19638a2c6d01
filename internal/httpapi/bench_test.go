package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/grants"
	"oauth-server/internal/httpapi"
	"oauth-server/internal/secret"
)

// newBare is a minimal token endpoint: it parses the same form, makes one ES256 signature and
// writes the same JSON. It does not authenticate, check or log.
func newBare(b *testing.B) *httptest.Server {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(b, err)
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"xVNOOsCgXGSkfLY9RbIrUvHyFkSFiKzvTPAyaWkBl8c","typ":"at+jwt"}`))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		now := time.Now().Unix()
		claims, err := json.Marshal(map[string]any{
			"iss": "http://127.0.0.1:9096", "sub": "daemon", "aud": "http://127.0.0.1:9096", "client_id": "daemon",
			"scope": "orders:read orders:write", "iat": now, "exp": now + 3600, "jti": secret.ID(),
		})
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		input := header + "." + base64.RawURLEncoding.EncodeToString(claims)
		digest := sha256.Sum256([]byte(input))
		R, S, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		var signature [64]byte
		R.FillBytes(signature[:32])
		S.FillBytes(signature[32:])
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"access_token": input + "." + base64.RawURLEncoding.EncodeToString(signature[:]),
			"token_type":   "Bearer", "expires_in": 3600, "scope": "orders:read orders:write",
		})
	}))
	b.Cleanup(srv.Close)
	return srv
}

// newTokenServer runs our server as in production: real grants, a signing key from a real store,
// and the access log in a file.
func newTokenServer(b *testing.B, edits ...worldEdit) *httptest.Server {
	b.Helper()
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	check.OK(b, err)
	b.Cleanup(func() { check.OK(b, log.Close()) })
	edits = append(edits, func(_ *grants.Options, o *httpapi.Options) { o.Logger = slog.New(slog.NewJSONHandler(log, nil)) })
	return newWorld(b, testworld.Clients{"daemon": daemon()}, edits...)
}

// ask sends one token request and reads the answer.
func ask(client *http.Client, url string) error {
	const body = "grant_type=client_credentials&scope=orders%3Aread+orders%3Awrite"
	r, err := http.NewRequest(http.MethodPost, url+"/token", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", formType)
	r.SetBasicAuth("daemon", secretOf)
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err = io.Copy(io.Discard, res.Body); err == nil && res.StatusCode != http.StatusOK {
		err = http.ErrNotSupported
	}
	return err
}

const benchClients = 16 // concurrent connections

// askMany sends n requests over [benchClients] connections.
func askMany(b *testing.B, client *http.Client, url string, n int) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(benchClients, n) {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := ask(client, url); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
}

func newBenchClient(b *testing.B) *http.Client {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: benchClients}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func benchmarkToken(b *testing.B, srv *httptest.Server) {
	b.Helper()
	client := newBenchClient(b)
	askMany(b, client, srv.URL, 2*benchClients)
	b.ReportAllocs()
	b.ResetTimer()
	askMany(b, client, srv.URL, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func BenchmarkTokenBare(b *testing.B) { benchmarkToken(b, newBare(b)) }

func BenchmarkTokenClientCredentials(b *testing.B) { benchmarkToken(b, newTokenServer(b)) }

// BenchmarkTokenShareOfBare reports our throughput as a share of the bare handler's.
func BenchmarkTokenShareOfBare(b *testing.B) {
	b.ReportMetric(takeTurns(b, newBare(b), newTokenServer(b)), "share-of-bare")
}

// BenchmarkTokenLimiter reports our throughput with the limiter as a share of the throughput
// without it.
func BenchmarkTokenLimiter(b *testing.B) {
	b.ReportMetric(takeTurns(b, newTokenServer(b), newTokenServer(b, limitedTo(b, 1_000_000))), "share-of-unlimited")
}

// takeTurns alternates requests to two servers, so other load on the machine affects both equally.
// It returns the throughput of the second as a share of the throughput of the first: the median
// over the rounds, which a single slow round does not change.
func takeTurns(b *testing.B, first, second *httptest.Server) float64 {
	b.Helper()
	client := newBenchClient(b)
	const turn = 100
	spent := func(srv *httptest.Server) float64 {
		began := time.Now()
		askMany(b, client, srv.URL, turn)
		return time.Since(began).Seconds()
	}
	spent(first) // opens the connections
	spent(second)
	var shares []float64
	for b.Loop() {
		before, between, after := spent(first), spent(second), spent(first)
		shares = append(shares, (before+after)/2/between)
	}
	slices.Sort(shares)
	return shares[len(shares)/2]
}
