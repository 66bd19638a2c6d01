package bolt

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
	"oauth-server/internal/store"
)

func restored(ctx context.Context, s *Store) error {
	_, err := s.Append(ctx, store.Entry{Number: 1, Value: []byte(`{"action":"restore"}`)})
	return err
}

// filled makes a file with records.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.db")
	s := mustOpen(t, path)
	var many []store.Record
	for i := range 3 * sweepStep {
		many = append(many, store.Record{Key: fmt.Sprintf("thing-%04d", i), Value: []byte(`{"a":"` + strings.Repeat("x", 100) + `"}`), Version: 1})
	}
	check.OK(t, s.PutAll(t.Context(), store.Table{Name: "things"}, many))
	for _, key := range []string{"a", "b"} { // the free pages before are used again
		_, err := s.Put(t.Context(), store.Table{Name: "others"}, store.Record{Key: key, Value: []byte("{}")}, store.Seen{})
		check.OK(t, err)
	}
	check.OK(t, s.Close())
	return path
}

// TestPrepare: the result has the content of the backup and the changes of then.
func TestPrepare(t *testing.T) {
	backup, ctx := filled(t), t.Context()
	before, err := os.ReadFile(backup)
	check.OK(t, err)
	prepared, err := Prepare(ctx, backup, filepath.Join(t.TempDir(), "data.db"), nil, restored)
	check.OK(t, err)
	info, err := os.Stat(prepared)
	check.OK(t, err)
	check.Equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	after, err := os.ReadFile(backup)
	check.OK(t, err)
	check.Equal(t, "the backup is as it was", bytes.Equal(before, after), true)

	s, things := mustOpen(t, prepared), 0
	check.OK(t, s.List(ctx, store.Table{Name: "things"}, store.Query{}, func(store.Record) error { things++; return nil }))
	check.Equal(t, "things", things, 3*sweepStep)
	entries, _, err := s.Trail(ctx, store.Mark{}, 2)
	check.OK(t, err)
	check.Equal(t, "entries", len(entries), 1)
}

// TestPrepareLeavesNothing: an unusable backup leaves no file behind.
func TestPrepareLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	backup := filepath.Join(t.TempDir(), "backup.db")
	whole := written(t)
	for _, content := range [][]byte{whole[:len(whole)-4096], withoutFreePages(whole)} {
		check.OK(t, os.WriteFile(backup, content, 0o600))
		if _, err := Prepare(t.Context(), backup, filepath.Join(dir, "data.db"), nil, restored); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Prepare() = %v, want ErrCorrupt", err)
		}
	}
	left, err := os.ReadDir(dir)
	check.OK(t, err)
	check.Equal(t, "files", len(left), 0)
}
