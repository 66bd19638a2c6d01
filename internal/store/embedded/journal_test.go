package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func openFolding(t *testing.T, path string, foldAt int) *Store {
	t.Helper()
	s, err := Open(path, Options{foldAt: foldAt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func tokenNamed(name string, expires time.Time) grants.RefreshToken {
	return grants.RefreshToken{Digest: secret.DigestOf(name), ExpiresAt: expires}
}

func createAll(t *testing.T, s *Store, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := s.CreateRefreshToken(t.Context(), tokenNamed(name, time.Unix(1000, 0))); err != nil {
			t.Fatal(err)
		}
	}
}

// stays reports how many records are where they stay, and in the index.
func stays(t *testing.T, s *Store) (records, indexed int) {
	t.Helper()
	err := s.view(t.Context(), func(tx *bolt.Tx) error {
		records = tx.Bucket(buckets[refreshTokens]).Stats().KeyN
		indexed = tx.Bucket(buckets[expiries]).Stats().KeyN
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records, indexed
}

// TestFolding follows records from the journal to where they stay.
func TestFolding(t *testing.T) {
	s := openFolding(t, filepath.Join(t.TempDir(), "data.db"), 4)
	createAll(t, s, "a", "b", "c", "d")
	if records, indexed := stays(t, s); records != 0 || indexed != 0 {
		t.Errorf("%d records and %d entries before the journal was full", records, indexed)
	}
	if s.writes.recent.full == nil || len(s.writes.recent.latest) != 0 {
		t.Error("the other journal has not taken over")
	}
	createAll(t, s, "e") // folds a slice, which is all there is
	if records, indexed := stays(t, s); records != 4 || indexed != 4 {
		t.Errorf("%d records and %d entries after folding, want 4", records, indexed)
	}
	if s.writes.recent.full != nil || len(s.writes.recent.latest) != 1 {
		t.Error("what was folded is still in memory")
	}
	if err := s.RotateRefreshToken(t.Context(), secret.DigestOf("a"), tokenNamed("f", time.Unix(2000, 0))); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(t.Context(), time.Unix(1500, 0)); n != 5 || err != nil {
		t.Errorf("swept %d of 5, %v", n, err)
	}
	createAll(t, s, "g", "h", "i", "j", "k")
	if records, indexed := stays(t, s); records != indexed {
		t.Errorf("%d records, but %d entries in the index", records, indexed)
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if _, err := s.RefreshToken(t.Context(), secret.DigestOf(name)); !errors.Is(err, grants.ErrNotFound) {
			t.Errorf("%s was swept: %v", name, err)
		}
	}
}

// TestFoldingIsBounded: a commit folds a slice, not everything.
func TestFoldingIsBounded(t *testing.T) {
	s := openFolding(t, filepath.Join(t.TempDir(), "data.db"), 10*foldStep)
	for i := range 10 * foldStep {
		createAll(t, s, fmt.Sprint(i))
	}
	createAll(t, s, "one more")
	if records, _ := stays(t, s); records != foldStep+2 {
		t.Errorf("one write has folded %d records", records)
	}
}

// TestOpenWithBothJournals: the process ends at each step of folding; what was
// written last is what is found, however often folding begins anew.
func TestOpenWithBothJournals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	d := secret.DigestOf("changed often")
	until := time.Unix(0, 0)
	for i := range 100 {
		s := openFolding(t, path, 40)
		until = until.Add(time.Minute)
		if err := s.Revoke(t.Context(), "changed often", until); err != nil {
			t.Fatal(err)
		}
		createAll(t, s, fmt.Sprint(i), fmt.Sprint("more ", i))
		err := s.find(t.Context(), place{revocations, d}, func(value []byte) error {
			if got := expiryOf(value); !got.Equal(until) {
				t.Errorf("round %d: revoked until %s, want %s", i, got, until)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, old := range []int{0, i / 2, i} {
			if _, err := s.RefreshToken(t.Context(), secret.DigestOf(fmt.Sprint(old))); err != nil {
				t.Errorf("round %d: token %d: %v", i, old, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadsWhileFolding: a record can be found at every moment of its way.
func TestReadsWhileFolding(t *testing.T) {
	s := openFolding(t, filepath.Join(t.TempDir(), "data.db"), 8)
	const n = 64
	for i := range n {
		createAll(t, s, fmt.Sprint("old ", i))
	}
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			for i := r; ctx.Err() == nil; i++ {
				name := fmt.Sprint("old ", i%n)
				if _, err := s.RefreshToken(t.Context(), secret.DigestOf(name)); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	for i := range 1000 {
		createAll(t, s, fmt.Sprint("new ", i))
		if i%10 == 0 {
			if err := s.Revoke(t.Context(), "r", time.Unix(int64(i), 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	readers.Wait()
}
