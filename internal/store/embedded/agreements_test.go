package embedded

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// putAgreements stores so many agreements, in the order of their keys. Those from the given one on have
// expired at that time.
func putAgreements(tb testing.TB, s *Store, n, expired int, now time.Time) {
	tb.Helper()
	b := benchAuthorization()
	for first := 0; first < n; first += 20_000 {
		check.OK(tb, s.writes.do(tb.Context(), func(w *writeTx) error {
			bucket, err := w.tx.CreateBucketIfNotExists(agreements)
			for i := first; err == nil && i < min(n, first+20_000); i++ {
				a := grants.Agreement{
					Username: fmt.Sprintf("user-%08d", i), ClientID: b.ClientID, ID: b.Family, Scopes: b.Scopes, Version: 1,
					AgreedAt: now, UsedAt: now, ExpiresAt: now.Add(time.Hour), ClientStamp: secret.NewStamp(), UserStamp: secret.NewStamp(),
				}
				if i >= expired {
					a.ExpiresAt = now.Add(-time.Hour)
				}
				err = bucket.Put(agreementKey(a.Username, a.ClientID), encodeAgreement(&a))
			}
			w.touched, w.dirty = true, true
			return err
		}))
	}
}

// TestAgreementsAreSweptInParts: a sweep reads a bounded number of agreements, and the next one begins
// where it ended.
func TestAgreementsAreSweptInParts(t *testing.T) {
	const beyond = 700
	s, now := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), time.Now()
	s.db.NoSync = true
	putAgreements(t, s, partPerSweep+beyond, partPerSweep-1, now)
	sweep := func(want int) {
		t.Helper()
		n, err := s.Sweep(t.Context(), now)
		check.OK(t, err)
		check.Equal(t, "removed", n, want)
	}
	sweep(1)
	putAgreements(t, s, 1, 0, now) // before the place
	sweep(beyond)
	sweep(1)
	sweep(0)
}

// BenchmarkSweepAgreements: a sweep of a million agreements of which none has expired.
func BenchmarkSweepAgreements(b *testing.B) {
	s, now := mustOpen(b, filepath.Join(b.TempDir(), "data.db")), time.Now()
	s.db.NoSync = true
	putAgreements(b, s, 1_000_000, 1_000_000, now)
	for b.Loop() {
		if _, err := s.Sweep(b.Context(), now); err != nil {
			b.Fatal(err)
		}
	}
}
