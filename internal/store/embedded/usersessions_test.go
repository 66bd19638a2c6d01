package embedded

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func sessionAt(name string, seconds int64) grants.Session {
	return grants.Session{
		Digest: secret.DigestOf(name), Username: "alice",
		CreatedAt: time.Unix(seconds, 0).UTC(), ExpiresAt: time.Unix(seconds+1000, 0).UTC(),
	}
}

// createAsBefore creates a session as a release without the index did.
func createAsBefore(ctx context.Context, s *Store, session grants.Session) error {
	return s.writes.do(ctx, func(w *writeTx) error {
		return w.add(place{sessions, session.Digest}, encodeSession(&session))
	})
}

// userEntries returns how many entries the index has, and fails on one without a session.
func userEntries(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.view(t.Context(), func(tx *bolt.Tx) error {
		b := tx.Bucket(userSessions)
		if b == nil {
			return nil
		}
		return b.ForEach(func(key, _ []byte) error {
			n++
			if get(tx, sessions, key[len(key)-len(secret.Digest{}):]) == nil {
				t.Errorf("entry %x has no session", key)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSessionsOfAnEarlierRelease have no entry in the index: they are found, can be signed out and
// expire, and end no other.
func TestSessionsOfAnEarlierRelease(t *testing.T) {
	s, ctx := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), t.Context()
	for i, name := range []string{"old 0", "old 1", "old 2"} {
		if err := createAsBefore(ctx, s, sessionAt(name, int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteSession(ctx, secret.DigestOf("old 0")); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"new 0", "new 1", "new 2"} {
		if err := s.CreateSession(ctx, sessionAt(name, int64(100+i)), 2); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]error{
		"old 0": grants.ErrNotFound, "old 1": nil, "old 2": nil, "new 0": grants.ErrNotFound, "new 1": nil, "new 2": nil,
	} {
		if _, err := s.Session(ctx, secret.DigestOf(name)); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
	}
	if n, err := s.Sweep(ctx, time.Unix(1050, 0)); n != 2 || err != nil {
		t.Errorf("swept %d of the 2 old ones: %v", n, err)
	}
	if n := userEntries(t, s); n != 2 {
		t.Errorf("%d entries for two sessions", n)
	}
}

// TestEntriesLeftBehind by an earlier release, which removed a session and does not know the index, do
// not count, and are removed.
func TestEntriesLeftBehind(t *testing.T) {
	s, ctx := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), t.Context()
	for i, name := range []string{"a", "b", "left 0", "left 1", "left 2"} {
		if err := s.CreateSession(ctx, sessionAt(name, int64(i)), 20); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"left 0", "left 1", "left 2"} {
		err := s.writes.do(ctx, func(w *writeTx) error {
			d := secret.DigestOf(name)
			return w.delete(sessions, d[:])
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CreateSession(ctx, sessionAt("c", 10), 3); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.Session(ctx, secret.DigestOf(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := userEntries(t, s); n != 3 {
		t.Errorf("%d entries for three sessions", n)
	}
}

// TestMalformedEntry is damage.
func TestMalformedEntry(t *testing.T) {
	s, ctx := mustOpen(t, filepath.Join(t.TempDir(), "data.db")), t.Context()
	if err := s.CreateSession(ctx, sessionAt("a", 1), 20); err != nil {
		t.Fatal(err)
	}
	err := s.writes.do(ctx, func(w *writeTx) error {
		user := secret.DigestOf("alice")
		w.touched, w.dirty = true, true
		return w.tx.Bucket(userSessions).Put(user[:], nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateSession(ctx, sessionAt("b", 2), 20); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want %v", err, ErrCorrupt)
	}
	if _, err := s.Session(ctx, secret.DigestOf("b")); !errors.Is(err, grants.ErrNotFound) {
		t.Errorf("half of it was written: %v", err)
	}
}
