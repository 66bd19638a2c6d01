package sharing_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/gateway/sharing"
)

// entry returns an entry as from Keycloak, which uses UUIDs as user names.
func entry(n int, expires time.Time) sharing.Entry {
	return sharing.Entry{
		Key: sharing.KeyOf(token(n), "shop"), Subject: fmt.Sprintf("%08d-2a73-4d66-9f7f-1d9c1a7b8e21", n), Expires: expires,
	}
}

// TestRepository checks that entries come back unchanged, and that the one that expires last is
// kept of several with one key.
func TestRepository(t *testing.T) {
	r := sharing.NewRepository(testworld.OpenStore(t, filepath.Join(t.TempDir(), "data.db")))
	first, second := entry(1, noon), entry(2, noon)
	second.Subject = strings.Repeat("ä\"", 85)
	_, err := r.Subject(t.Context(), first.Key)
	check.ErrorIs(t, err, sharing.ErrNotFound, "read")
	check.OK(t, r.PutSubjects(t.Context(), []sharing.Entry{first, second}))
	later, earlier := first, second
	later.Expires, earlier.Expires = noon.Add(time.Hour), noon.Add(-time.Hour)
	check.OK(t, r.PutSubjects(t.Context(), []sharing.Entry{later, earlier}))
	for _, want := range []sharing.Entry{later, second} {
		got, err := r.Subject(t.Context(), want.Key)
		check.OK(t, err)
		check.Equal(t, "entry", got, want)
	}
}

var benchSubjects = flag.Int("subjects", 100_000, "how many users of refresh tokens BenchmarkRepository begins with")

// BenchmarkRepository reads users of present and missing refresh tokens, among the given number of
// others. It reports the growth of the file, and how long it takes to store a batch:
//
//	go test -run '^$' -bench Repository ./internal/gateway/sharing -subjects 1000000
func BenchmarkRepository(b *testing.B) {
	file := filepath.Join(b.TempDir(), "data.db")
	r, n := sharing.NewRepository(testworld.OpenStore(b, file)), *benchSubjects
	began := time.Now()
	for first := 0; first < n; first += sharing.MaxBatch {
		batch := make([]sharing.Entry, 0, sharing.MaxBatch)
		for i := first; i < min(first+sharing.MaxBatch, n); i++ {
			batch = append(batch, entry(i, noon))
		}
		check.OK(b, r.PutSubjects(b.Context(), batch))
	}
	put := time.Since(began)
	info, err := os.Stat(file)
	check.OK(b, err)
	for name, first := range map[string]int{"found": 0, "unknown": n} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := r.Subject(b.Context(), entry(first+i*7919%n, noon).Key); err != nil && !errors.Is(err, sharing.ErrNotFound) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(put.Seconds()*1e3/float64(n)*sharing.MaxBatch, "put-1000-ms")
			b.ReportMetric(float64(info.Size())/float64(n), "file-B/entry")
		})
	}
}
