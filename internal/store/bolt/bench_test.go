package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/syncer"
)

// Each operation is durable when it returns, so the figures apply to the disk that the temporary
// directory is on. The iterations are fixed because a store of many families takes time to fill:
//
//	go test -run '^$' -bench . -benchtime 20000x ./internal/store/bolt -families 300000,10000000
//
// Besides the time per operation the benchmarks report its p50 and p99, and the growth of the file.

var benchFamilies = flag.String("families", "20000,300000", "how many families the benchmarks begin with")

var benchClients = []int{1, 64}

func benchAuthorization() grants.Authorization {
	return grants.Authorization{
		ClientID: "mobile-app", Username: "alice@example.com", Scopes: []string{"openid", "read", "write"},
		Family: secret.ID(), AuthTime: time.Unix(1_700_000_000, 0),
	}
}

func benchCode(now time.Time) grants.Grant {
	return grants.Grant{
		Authorization: benchAuthorization(), Digest: secret.DigestOf(secret.New()),
		RedirectURI: "https://client.example.com/callback", Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		IssuedAt: now, ExpiresAt: now.Add(time.Minute),
	}
}

func benchFamily(now time.Time) grants.Grant {
	return grants.Grant{
		Authorization: benchAuthorization(), Digest: secret.DigestOf(secret.New()), Generation: 1,
		IssuedAt: now, ExpiresAt: now.Add(benchLifetime),
	}
}

const benchLifetime = 30 * 24 * time.Hour

// benchDigest returns the digest of family i in a file of benchFile.
func benchDigest(i int) secret.Digest { return secret.DigestOf(fmt.Sprint("family ", i)) }

// benchFile makes a data file with families that were last refreshed at times spread over the 30
// days before now.
func benchFile(b *testing.B, families int, now time.Time) (path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "bench.db")
	s := mustOpen(b, path)
	s.db.NoSync = true // until the file is complete
	r, n := grants.NewRepository(s), atomic.Int64{}
	share(b, 512, families, func(ctx context.Context) error {
		d := benchDigest(int(n.Add(1) - 1))
		f := benchFamily(now.Add(-time.Duration(binary.BigEndian.Uint64(d[:]) % uint64(benchLifetime))))
		f.Digest = d
		return r.CreateGrant(ctx, f)
	})
	if err := errors.Join(s.db.Sync(), s.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

// benchSizes returns how many families to begin with.
func benchSizes(b *testing.B) (sizes []int) {
	b.Helper()
	for _, size := range strings.Split(*benchFamilies, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	return sizes
}

// benchEach runs a benchmark on stores of each size, with one client and with many.
func benchEach(b *testing.B, run func(b *testing.B, s *Store, families, clients int)) {
	b.Helper()
	for _, families := range benchSizes(b) {
		b.Run(fmt.Sprintf("families=%d", families), func(b *testing.B) {
			path := benchFile(b, families, time.Now())
			for _, clients := range benchClients {
				b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
					s := mustOpen(b, path)
					run(b, s, families, clients)
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				})
			}
		})
	}
}

// measure runs b.N operations, shared by the clients, and reports the times.
func measure(b *testing.B, s *Store, clients int, do func(ctx context.Context) error) {
	b.Helper()
	before := benchSize(b, s)
	b.ResetTimer()
	took := share(b, clients, b.N, do)
	b.StopTimer()
	reportTook(b, "", took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64(benchSize(b, s)-before)/float64(b.N), "file-B/op")
}

// reportTook reports p50 and p99.
func reportTook(b *testing.B, prefix string, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100])/1e3, fmt.Sprintf("%sp%d-µs", prefix, p))
	}
}

// benchSize returns how much of the file has ever been in use.
func benchSize(b *testing.B, s *Store) (size int64) {
	b.Helper()
	err := s.view(b.Context(), func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// share runs n operations, shared by the clients, and returns how long each took.
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
	benchEach(b, func(b *testing.B, s *Store, _, clients int) {
		b.Helper()
		issued := make([]grants.Grant, b.N)
		for i := range issued {
			issued[i] = benchCode(time.Now().Add(time.Duration(i-b.N) * time.Millisecond))
		}
		r, n := grants.NewRepository(s), atomic.Int64{}
		share(b, 256, b.N, func(ctx context.Context) error { return r.CreateGrant(ctx, issued[n.Add(1)-1]) })
		n.Store(0)
		measure(b, s, clients, func(ctx context.Context) error {
			c, err := r.Grant(ctx, issued[n.Add(1)-1].Digest)
			if err != nil {
				return err
			}
			first, now := c.Redeemed(), time.Now()
			first.Generation, first.IssuedAt, first.ExpiresAt = 1, now, now.Add(benchLifetime)
			return r.Claim(ctx, first)
		})
	})
}

// BenchmarkRotateFamily refreshes families at random. One client at a time refreshes each.
func BenchmarkRotateFamily(b *testing.B) {
	benchEach(b, func(b *testing.B, s *Store, families, clients int) {
		b.Helper()
		measure(b, s, clients, rotating(s, func(i int) secret.Digest { return benchDigest(i % families) }))
	})
}

// rotating returns a function that refreshes one family after the other.
func rotating(s *Store, next func(i int) secret.Digest) func(ctx context.Context) error {
	r, n := grants.NewRepository(s), atomic.Int64{}
	return func(ctx context.Context) error {
		d := next(int(n.Add(1) - 1))
		for {
			f, err := r.Grant(ctx, d)
			if err != nil {
				return err
			}
			f.Generation, f.IssuedAt, f.ExpiresAt = f.Generation+1, time.Now(), time.Now().Add(benchLifetime)
			if err = r.Claim(ctx, f); !errors.Is(err, grants.ErrClaimed) {
				return err
			}
		}
	}
}

// BenchmarkExchange counts in 1,000 counters of 20 frames, and reads them.
func BenchmarkExchange(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "data.db"))
	items := make([]syncer.Item, syncer.MaxBatch)
	for i := range items {
		w := &syncer.Write{NewEtag: 1, Writer: "k3x9q2m7", Seq: 1, Frame: 3000, Expire: time.Now().Add(time.Hour)}
		for frame := range int64(20) {
			w.Delta = append(w.Delta, ratelimit.FrameCount{Name: 1_700_000_000 + 3*frame, Count: frame})
		}
		items[i] = syncer.Item{ID: ratelimit.CounterID{ClientID: "mobile-app", Username: fmt.Sprintf("user-%04d@example.com", i)}, Read: true, Write: w}
	}
	b.ReportAllocs()
	for b.Loop() {
		results, err := s.Exchange(b.Context(), items)
		if err != nil {
			b.Fatal(err)
		}
		for i, r := range results {
			if r.Status != syncer.Applied {
				b.Fatal(r.Status, r.Err)
			}
			w := items[i].Write
			w.Versioned, w.Version, w.Etag = true, r.Record.Version, r.Record.Etag
			w.NewEtag, w.Seq, w.Delta = w.NewEtag+1, w.Seq+1, w.Delta[:1]
		}
	}
}
