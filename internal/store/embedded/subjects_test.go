package embedded

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/sharing"
	"oauth-server/internal/gateway/subject"
)

var benchSubjects = flag.Int("subjects", 100_000, "how many users of refresh tokens BenchmarkSubjects begins with")

func subjectOf(n int, expires time.Time) sharing.Entry {
	return sharing.Entry{
		Key:     sharing.KeyOf(subject.DigestOf(fmt.Sprint(n)), "shop"),
		Subject: fmt.Sprintf("%08d-2a73-4d66-9f7f-1d9c1a7b8e21", n), Expires: expires,
	}
}

// putSubjects stores so many, in batches, and returns how long each took.
func putSubjects(tb testing.TB, s *Store, n int, expires func(i int) time.Time) (took []time.Duration) {
	tb.Helper()
	for first := 0; first < n; first += sharing.MaxBatch {
		batch := make([]sharing.Entry, 0, sharing.MaxBatch)
		for i := first; i < min(first+sharing.MaxBatch, n); i++ {
			batch = append(batch, subjectOf(i, expires(i)))
		}
		began := time.Now()
		check.OK(tb, s.PutSubjects(tb.Context(), batch))
		took = append(took, time.Since(began))
	}
	return took
}

// TestSubjectsAreSweptInParts: all that have expired go within some sweeps, and nothing else.
func TestSubjectsAreSweptInParts(t *testing.T) {
	s, now := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), time.Now()
	s.db.NoSync = true
	const n = partPerSweep + 1000
	putSubjects(t, s, n, func(i int) time.Time { return now.Add(time.Duration(i%2*2-1) * time.Hour) })
	first, err := s.Sweep(t.Context(), now)
	check.OK(t, err)
	second, err := s.Sweep(t.Context(), now)
	check.OK(t, err)
	check.Equal(t, "removed at first", first >= partPerSweep/4 && first < n/2, true)
	check.Equal(t, "removed", first+second, n/2)
	for i := range 1000 {
		_, err := s.Subject(t.Context(), subjectOf(i, now).Key)
		check.Equal(t, "is there", !errors.Is(err, sharing.ErrNotFound), i%2 == 1)
	}
}

// TestDamagedSubject is a failure, and Inspect counts it.
func TestDamagedSubject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	s := mustOpen(t, path)
	e := subjectOf(1, time.Now())
	check.OK(t, s.PutSubjects(t.Context(), []sharing.Entry{e, subjectOf(2, time.Now())}))
	check.OK(t, s.writes.do(t.Context(), func(w *writeTx) error {
		w.touched, w.dirty = true, true
		return w.tx.Bucket(subjects).Put(e.Key[:], []byte{recordVersion, 0, 1})
	}))
	_, err := s.Subject(t.Context(), e.Key)
	check.Equal(t, "damage is noticed", errors.Is(err, ErrCorrupt), true)
	check.OK(t, s.Close())
	sum, err := Inspect(t.Context(), path)
	check.OK(t, err)
	check.Equal(t, "records, unreadable", []int{sum.Records["subjects"], sum.Unreadable["subjects"]}, []int{2, 1})
}

// BenchmarkSubjects reads users of refresh tokens that are there and that are not, beside so many others:
//
//	go test -run '^$' -bench Subjects ./internal/store/embedded -subjects 1000000
//
// It reports the growth of the file, and how long a batch takes to store.
func BenchmarkSubjects(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "data.db"))
	at, n := time.Now().Add(time.Hour), *benchSubjects
	before := benchSize(b, s)
	puts := putSubjects(b, s, n, func(int) time.Time { return at })
	grown := benchSize(b, s) - before
	slices.Sort(puts)
	for name, first := range map[string]int{"found": 0, "unknown": n} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := s.Subject(b.Context(), subjectOf(first+i*7919%n, at).Key); err != nil && !errors.Is(err, sharing.ErrNotFound) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(puts[len(puts)/2])/1e6, "put-1000-ms")
			b.ReportMetric(float64(grown)/float64(n), "file-B/entry")
		})
	}
}

// BenchmarkSweepSubjects: a sweep of a million users of refresh tokens of which none has expired.
func BenchmarkSweepSubjects(b *testing.B) {
	s, now := mustOpen(b, filepath.Join(b.TempDir(), "data.db")), time.Now()
	s.db.NoSync = true
	putSubjects(b, s, 1_000_000, func(int) time.Time { return now.Add(time.Hour) })
	for b.Loop() {
		if _, err := s.Sweep(b.Context(), now); err != nil {
			b.Fatal(err)
		}
	}
}
