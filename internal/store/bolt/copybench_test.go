package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/secret"
)

// BenchmarkCopy measures a copy to a file on the same disk while one client refreshes. It reports
// how long the copy takes, how long the refreshes take during the copy, how much the file grows,
// and how long the check of the copy takes.
//
//	go test -run '^$' -bench Copy -benchtime 1x ./internal/store/bolt -families 300000,1000000
func BenchmarkCopy(b *testing.B) {
	for _, families := range benchSizes(b) {
		b.Run(fmt.Sprintf("families=%d", families), func(b *testing.B) {
			path := benchFile(b, families, time.Now())
			s := mustOpen(b, path)
			rotate := rotating(s, func(i int) secret.Digest { return benchDigest(i % families) })
			reportTook(b, "alone-", share(b, 1, scaleSample, rotate))
			before := benchSize(b, s)
			out, err := os.Create(filepath.Join(b.TempDir(), "copy.db"))
			if err != nil {
				b.Fatal(err)
			}
			copied := make(chan error, 1)
			var took time.Duration
			go func() {
				began := time.Now()
				err := s.Copy(b.Context(), out, anySize)
				took = time.Since(began)
				copied <- err
			}()
			var beside []time.Duration
			for len(copied) == 0 {
				beside = append(beside, share(b, 1, 50, rotate)...)
			}
			if err := <-copied; err != nil {
				b.Fatal(err)
			}
			reportTook(b, "beside-", beside)
			b.ReportMetric(took.Seconds(), "copy-s")
			b.ReportMetric(float64(before)/1e6, "file-MB")
			b.ReportMetric(float64(benchSize(b, s)-before)/1e6, "growth-MB")
			began := time.Now()
			if _, err := Inspect(b.Context(), out.Name(), nil); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(time.Since(began).Seconds(), "check-s")
			if err := out.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
