package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// Each operation is durable when it returns, so the figures hold for the disk that the temporary
// directory is on. The iterations are fixed because a store of 300,000 families takes time to fill:
//
//	go test -run '^$' -bench . -benchtime 20000x ./internal/store/embedded
//
// Beside the time per operation they report its p50 and p99, and the growth of the file.

var (
	benchClients  = []int{1, 64}
	benchFamilies = []int{20_000, 300_000}
)

func benchAuthorization() grants.Authorization {
	return grants.Authorization{
		ClientID: "mobile-app", Username: "alice@example.com", Scopes: []string{"openid", "read", "write"},
		Family: secret.ID(), AuthTime: time.Unix(1_700_000_000, 0),
	}
}

func benchCode(now time.Time) grants.Code {
	return grants.Code{
		Authorization: benchAuthorization(), Digest: secret.DigestOf(secret.New()),
		RedirectURI: "https://client.example.com/callback", Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		IssuedAt: now, ExpiresAt: now.Add(time.Minute),
	}
}

func benchFamily(now time.Time) grants.Family {
	return grants.Family{
		Authorization: benchAuthorization(), Digest: secret.DigestOf(secret.New()), Generation: 1,
		IssuedAt: now, ExpiresAt: now.Add(30 * 24 * time.Hour),
	}
}

// benchFile makes a data file with families in it, refreshed last evenly over the last 30 days.
func benchFile(b *testing.B, families int) (path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "bench.db")
	s := mustOpen(b, path)
	for from := 0; from < families; from += 1000 {
		err := s.writes.do(b.Context(), func(w *writeTx) error {
			for i := from; i < min(from+1000, families); i++ {
				f := benchFamily(time.Now().Add(-time.Duration(families-i) * 30 * 24 * time.Hour / time.Duration(families)))
				if err := w.add(placeOfFamily(f.Digest), encodeFamily(&f)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// benchEach runs a benchmark on stores of either size, with one client and with many.
func benchEach(b *testing.B, run func(b *testing.B, s *Store, clients int)) {
	b.Helper()
	for _, families := range benchFamilies {
		for _, clients := range benchClients {
			b.Run(fmt.Sprintf("families=%d/clients=%d", families, clients), func(b *testing.B) {
				run(b, mustOpen(b, benchFile(b, families)), clients)
			})
		}
	}
}

// measure lets the clients do b.N operations between them, and reports what they took.
func measure(b *testing.B, s *Store, clients int, do func(ctx context.Context) error) {
	b.Helper()
	before := benchSize(b, s)
	b.ResetTimer()
	took := share(b, clients, b.N, do)
	b.StopTimer()
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100])/1e3, fmt.Sprintf("p%d-µs", p))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(benchSize(b, s)-before)/float64(b.N), "file-B/op")
}

// benchSize is how much of the file has ever been in use.
func benchSize(b *testing.B, s *Store) (size int64) {
	b.Helper()
	err := s.view(b.Context(), func(tx *bolt.Tx) error {
		size = tx.Size()
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// share lets so many clients do n operations between them, and returns how long each took.
func share(b *testing.B, clients, n int, do func(ctx context.Context) error) []time.Duration {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	took, errs := make([]time.Duration, n), make([]error, clients)
	for c := range clients {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[c] == nil; i = next.Add(1) - 1 {
				began := time.Now()
				errs[c] = do(b.Context())
				took[i] = time.Since(began)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	return took
}

func BenchmarkRedeemCode(b *testing.B) {
	benchEach(b, func(b *testing.B, s *Store, clients int) {
		b.Helper()
		issued := make([]grants.Code, b.N)
		for i := range issued {
			issued[i] = benchCode(time.Now().Add(time.Duration(i-b.N) * time.Millisecond))
		}
		var n atomic.Int64
		share(b, 256, b.N, func(ctx context.Context) error { return s.CreateCode(ctx, issued[n.Add(1)-1]) })
		n.Store(0)
		measure(b, s, clients, func(ctx context.Context) error {
			c, err := s.Code(ctx, issued[n.Add(1)-1].Digest)
			if err != nil {
				return err
			}
			first := benchFamily(time.Now())
			first.Digest = c.Digest
			return s.RedeemCode(ctx, c.Digest, &first)
		})
	})
}

func BenchmarkRotateFamily(b *testing.B) {
	benchEach(b, func(b *testing.B, s *Store, clients int) {
		b.Helper()
		now, owned := time.Now(), make(chan secret.Digest, clients)
		for range clients {
			f := benchFamily(now)
			if err := s.CreateFamily(b.Context(), f); err != nil {
				b.Fatal(err)
			}
			owned <- f.Digest
		}
		measure(b, s, clients, func(ctx context.Context) error {
			d := <-owned
			f, err := s.Family(ctx, d)
			if err != nil {
				return err
			}
			f.Generation, f.IssuedAt, f.ExpiresAt = f.Generation+1, time.Now(), time.Now().Add(30*24*time.Hour)
			err = s.RotateFamily(ctx, f)
			owned <- d
			return err
		})
	})
}

func BenchmarkCreateCode(b *testing.B) {
	benchEach(b, func(b *testing.B, s *Store, clients int) {
		b.Helper()
		measure(b, s, clients, func(ctx context.Context) error { return s.CreateCode(ctx, benchCode(time.Now())) })
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, families := range benchFamilies {
		b.Run(fmt.Sprintf("families=%d", families), func(b *testing.B) {
			path := benchFile(b, families)
			b.ResetTimer()
			for range b.N {
				if err := mustOpen(b, path).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
