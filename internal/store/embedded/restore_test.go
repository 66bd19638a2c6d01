package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

var restored = Restoration{
	Then: func(ctx context.Context, s *Store) error {
		_, err := s.Append(ctx, store.Entry{Number: 1, Value: []byte(`{"action":"restore"}`)})
		return err
	},
}

// filled makes a file with one record of each kind, issued to a client and a user.
func filled(t *testing.T) (path string, u grants.User) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data.db")
	s := mustOpen(t, path)
	ctx := t.Context()
	var many []store.Record
	for i := range 3 * sweepStep {
		many = append(many, store.Record{Key: fmt.Sprintf("thing-%04d", i), Value: []byte(`{"a":"` + strings.Repeat("x", 100) + `"}`), Version: 1})
	}
	check.OK(t, s.PutAll(ctx, store.Table{Name: "things"}, many))
	u = grants.User{Name: "ada", Stamp: secret.NewStamp(), PasswordHash: "h"}
	check.OK(t, errors.Join(
		s.CreateUser(ctx, u),
		s.writes.do(ctx, func(w *writeTx) error { return w.put(users, []byte("odd"), []byte("no user")) }),
		s.Close(),
	))
	return path, u
}

// TestPrepare: what was issued before a restoration ends, unless it is to be kept; nothing else changes.
func TestPrepare(t *testing.T) {
	for _, keep := range []bool{false, true} {
		backup, u := filled(t)
		before, err := os.ReadFile(backup)
		check.OK(t, err)
		r := restored
		r.KeepSignIns = keep
		data := filepath.Join(t.TempDir(), "data.db")
		prepared, err := Prepare(t.Context(), backup, data, r)
		check.OK(t, err)
		info, err := os.Stat(prepared)
		check.OK(t, err)
		check.Equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
		after, err := os.ReadFile(backup)
		check.OK(t, err)
		check.Equal(t, "the backup is as it was", bytes.Equal(before, after), true)

		s := mustOpen(t, prepared)
		ctx := t.Context()
		ada, err := s.User(ctx, "ada")
		check.OK(t, err)
		check.Equal(t, "password", ada.PasswordHash, u.PasswordHash)
		check.Equal(t, "sessions of ada are accepted", ada.Stamp.Accepts(u.Stamp.Revoked()), keep)
		entries, _, err := s.Trail(ctx, store.Mark{}, 2)
		check.OK(t, err)
		check.Equal(t, "entries", len(entries), 1)
	}
}

// TestPrepareLeavesNothing: of a backup that cannot be used.
func TestPrepareLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	backup := filepath.Join(t.TempDir(), "backup.db")
	whole := written(t)
	check.OK(t, os.WriteFile(backup, whole[:len(whole)-4096], 0o600))
	if _, err := Prepare(t.Context(), backup, filepath.Join(dir, "data.db"), restored); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Prepare() = %v, want ErrCorrupt", err)
	}
	left, err := os.ReadDir(dir)
	check.OK(t, err)
	check.Equal(t, "files", len(left), 0)
}
