package bolt

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/secret"
)

// The benchmarks of `make scale`. Each fills one file and measures a fixed number of operations on it:
//
//	go test -run '^$' -bench Scale -benchtime 1x ./internal/store/bolt -families 1000,10000000 -refreshes 10000000

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
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(began).Microseconds())/float64(max(removed, 1)), "sweep-µs/entry")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
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
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
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
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
