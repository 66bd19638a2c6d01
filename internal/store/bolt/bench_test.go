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

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store/exchange"
)

// The benchmarks of `make scale`. Each fills one file and measures a fixed number of operations on it,
// because a store of many families takes time to fill. Each operation is durable when it returns, so
// the figures apply to the disk that the temporary directory is on:
//
//	go test -run '^$' -bench Scale -benchtime 1x ./internal/store/bolt -families 1000,10000000 -refreshes 10000000

var benchFamilies = flag.String("families", "20000,300000", "how many families the benchmarks begin with")

func benchAuthorization() grants.Authorization {
	return grants.Authorization{
		ClientID: "mobile-app", Username: "alice@example.com", Scopes: []string{"openid", "read", "write"},
		Family: secret.ID(), AuthTime: time.Unix(1_700_000_000, 0),
	}
}

// code returns a code that is valid for a minute.
func code(now time.Time) grants.Grant {
	return grants.Grant{Authorization: benchAuthorization(), Digest: secret.DigestOf(secret.New()), IssuedAt: now, ExpiresAt: now.Add(time.Minute)}
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
	check.OK(b, errors.Join(s.db.Sync(), s.Close()))
	return path
}

// benchSizes returns how many families to begin with.
func benchSizes(b *testing.B) (sizes []int) {
	b.Helper()
	for _, size := range strings.Split(*benchFamilies, ",") {
		n, err := strconv.Atoi(size)
		check.OK(b, err)
		sizes = append(sizes, n)
	}
	return sizes
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
	check.OK(b, err)
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
	check.OK(b, errors.Join(errs...))
	return took
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
	items := make([]exchange.Item, exchange.MaxBatch)
	for i := range items {
		w := &exchange.Write{NewEtag: 1, Writer: "k3x9q2m7", Seq: 1, Frame: 3000, Expire: time.Now().Add(time.Hour)}
		for frame := range int64(20) {
			w.Delta = append(w.Delta, exchange.FrameCount{Name: 1_700_000_000 + 3*frame, Count: frame})
		}
		items[i] = exchange.Item{ID: exchange.CounterID{ClientID: "mobile-app", Username: fmt.Sprintf("user-%04d@example.com", i)}, Read: true, Write: w}
	}
	b.ReportAllocs()
	for b.Loop() {
		results, err := s.Exchange(b.Context(), items)
		check.OK(b, err)
		for i, r := range results {
			if r.Status != exchange.Applied {
				b.Fatal(r.Status, r.Err)
			}
			w := items[i].Write
			w.Versioned, w.Version, w.Etag = true, r.Record.Version, r.Record.Etag
			w.NewEtag, w.Seq, w.Delta = w.NewEtag+1, w.Seq+1, w.Delta[:1]
		}
	}
}

var scaleRefreshes = flag.Int("refreshes", 20_000, "how many refreshes BenchmarkScaleRefreshes makes")

const (
	scaleSample = 5_000 // operations measured one after the other
	scaleOpens  = 20
	scaleBulk   = 512 // clients for operations that are not measured one by one
)

// BenchmarkScaleFamilies measures opening, refreshing and sweeping with the given number of live
// sign-ins.
func BenchmarkScaleFamilies(b *testing.B) {
	for _, families := range benchSizes(b) {
		b.Run(fmt.Sprintf("families=%d", families), func(b *testing.B) {
			now := time.Now()
			path := benchFile(b, families, now)
			scaleOpen(b, path)
			s := mustOpen(b, path)
			b.ReportMetric(float64(benchSize(b, s))/float64(families), "file-B/family")
			reportTook(b, "", share(b, 1, scaleSample, rotating(s, func(i int) secret.Digest { return benchDigest(i % families) })))
			began := time.Now()
			removed, err := s.Sweep(b.Context(), now.Add(time.Hour))
			check.OK(b, err)
			b.ReportMetric(float64(time.Since(began).Microseconds())/float64(max(removed, 1)), "sweep-µs/entry")
			check.OK(b, s.Close())
		})
	}
}

func scaleOpen(b *testing.B, path string) {
	b.Helper()
	took := make([]time.Duration, 0, scaleOpens)
	for range scaleOpens {
		began := time.Now()
		s := mustOpen(b, path)
		took = append(took, time.Since(began))
		check.OK(b, s.Close())
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[scaleOpens/2].Microseconds())/1e3, "open-ms")
}

// BenchmarkScaleRefreshes refreshes a thousand sign-ins again and again. It takes the same
// measurements after a thousand refreshes and after all of them.
func BenchmarkScaleRefreshes(b *testing.B) {
	const families = 1000
	s := mustOpen(b, benchFile(b, families, time.Now()))
	rotate := rotating(s, func(i int) secret.Digest { return benchDigest(i % families) })
	share(b, scaleBulk, families, rotate)
	before := benchSize(b, s)
	reportTook(b, "first-", share(b, 1, scaleSample, rotate))
	began := time.Now()
	share(b, scaleBulk, *scaleRefreshes, rotate)
	b.ReportMetric(float64(*scaleRefreshes)/time.Since(began).Seconds(), "refreshes/s")
	reportTook(b, "last-", share(b, 1, scaleSample, rotate))
	b.ReportMetric(float64(before), "file-B-before")
	b.ReportMetric(float64(benchSize(b, s)), "file-B-after")
	b.ReportMetric(float64(*scaleRefreshes), "refreshes")
	check.OK(b, s.Close())
}
