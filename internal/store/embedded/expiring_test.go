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

func createFamilies(t *testing.T, s *Store, expires time.Time, names ...string) {
	t.Helper()
	for _, name := range names {
		err := s.CreateFamily(t.Context(), grants.Family{Digest: secret.DigestOf(name), Generation: 1, ExpiresAt: expires})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// indexed checks that the expiry index has one entry of each expiring record, and returns how many. That
// of a family may be early.
func indexed(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.view(t.Context(), func(tx *bolt.Tx) error {
		n = tx.Bucket(buckets[expiries]).Stats().KeyN
		records := 0
		for _, k := range []kind{codes, refreshTokens, sessions, revocations} {
			records += tx.Bucket(buckets[k]).Stats().KeyN
		}
		if n != records {
			t.Errorf("%d entries in the index, want %d as there are records", n, records)
		}
		return tx.Bucket(buckets[expiries]).ForEach(func(key, _ []byte) error {
			p, err := parseExpiryKey(key)
			if err != nil {
				return err
			}
			at := string(expiryKey(p, expiryOf(get(tx, p.kind, p.digest[:]))))
			if early := p.kind == refreshTokens && at > string(key); !early && at != string(key) {
				t.Errorf("a record of kind %d is filed as %x, not as %x", p.kind, key, at)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestExpiryIndex follows the index through everything that changes a record.
func TestExpiryIndex(t *testing.T) {
	s, ctx := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), t.Context()
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	createFamilies(t, s, early, "a", "b", "c", "d", "e")
	createFamilies(t, s, time.Unix(-1000, 0), "before 1970")
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"create", func() error { return nil }, 6},
		{"rotate", func() error {
			return s.RotateFamily(ctx, grants.Family{Digest: secret.DigestOf("a"), Generation: 2, ExpiresAt: late})
		}, 6},
		{"redeem a code", func() error {
			d := secret.DigestOf("code")
			return errors.Join(s.CreateCode(ctx, grants.Code{Digest: d, ExpiresAt: late}), s.RedeemCode(ctx, d, nil))
		}, 7},
		{"revoke", func() error { return s.Revoke(ctx, "family", early) }, 8},
		{"revoke for longer", func() error { return s.Revoke(ctx, "family", late) }, 8},
		{"revoke for less", func() error { return s.Revoke(ctx, "family", early) }, 8},
		{"sign in", func() error {
			return s.CreateSession(ctx, grants.Session{Digest: secret.DigestOf("s"), ExpiresAt: early}, 20)
		}, 9},
		{"sign out", func() error { return s.DeleteSession(ctx, secret.DigestOf("s")) }, 8},
		{"sweep", func() error {
			if n, err := s.Sweep(ctx, time.Unix(1500, 0)); n != 5 || err != nil {
				return fmt.Errorf("swept %d of 5: %w", n, err)
			}
			return nil
		}, 3},
		{"rotate one that was filed again", func() error {
			return s.RotateFamily(ctx, grants.Family{Digest: secret.DigestOf("a"), Generation: 3, ExpiresAt: late.Add(time.Second)})
		}, 3},
		{"sweep all", func() error {
			n, err := s.Sweep(ctx, late.Add(time.Second))
			if n != 2 || err != nil {
				return fmt.Errorf("swept %d of 2: %w", n, err)
			}
			return nil
		}, 1},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if n := indexed(t, s); n != step.want {
			t.Errorf("%s: %d records, want %d", step.name, n, step.want)
		}
	}
	for _, name := range []string{"b", "c", "d", "e"} {
		if _, err := s.Family(ctx, secret.DigestOf(name)); !errors.Is(err, grants.ErrNotFound) {
			t.Errorf("%s was swept: %v", name, err)
		}
	}
}

// TestSweepOfWrongIndex: an entry that points to nothing, or to a record that expires later, is removed
// and takes no record with it.
func TestSweepOfWrongIndex(t *testing.T) {
	s, ctx := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), t.Context()
	createFamilies(t, s, time.Unix(2000, 0), "later")
	err := s.writes.do(ctx, func(w *writeTx) error {
		return errors.Join(
			w.put(expiries, expiryKey(placeOfFamily(secret.DigestOf("later")), time.Unix(1, 0)), nil),
			w.put(expiries, expiryKey(place{codes, secret.DigestOf("none")}, time.Unix(2, 0)), nil),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(ctx, time.Unix(1000, 0)); n != 0 || err != nil {
		t.Errorf("swept %d of 0: %v", n, err)
	}
	if n := indexed(t, s); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// TestOpenOften: what was written last is what is found, however often the process ends.
func TestOpenOften(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	until := time.Unix(0, 0)
	for i := range 30 {
		s := mustOpen(t, path)
		until = until.Add(time.Minute)
		if err := s.Revoke(t.Context(), "changed often", until); err != nil {
			t.Fatal(err)
		}
		createFamilies(t, s, time.Unix(1000, 0), fmt.Sprint(i), fmt.Sprint("more ", i))
		err := s.find(t.Context(), placeOfName("changed often"), func(value []byte) error {
			if got := expiryOf(value); !got.Equal(until) {
				t.Errorf("round %d: revoked until %s, want %s", i, got, until)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, old := range []int{0, i / 2, i} {
			if _, err := s.Family(t.Context(), secret.DigestOf(fmt.Sprint(old))); err != nil {
				t.Errorf("round %d: family %d: %v", i, old, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadsWhileWriting: a record can be found at every moment.
func TestReadsWhileWriting(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "data.db"))
	const n = 64
	for i := range n {
		createFamilies(t, s, time.Unix(1000, 0), fmt.Sprint("old ", i))
	}
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			for i := r; ctx.Err() == nil; i++ {
				name := fmt.Sprint("old ", i%n)
				if _, err := s.Family(t.Context(), secret.DigestOf(name)); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	for i := range 500 {
		createFamilies(t, s, time.Unix(1000, 0), fmt.Sprint("new ", i))
		if i%10 == 0 {
			if err := s.Revoke(t.Context(), "r", time.Unix(int64(i), 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	readers.Wait()
}
