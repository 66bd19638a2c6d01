package embedded

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// fileOfFormat1 unpacks a file that was written by a release of format 1 and closed in the middle of its
// work: 50 of the 60 records in the full journal had been moved, and the other journal held 9 newer
// ones. Everything in it was issued at issued1.
func fileOfFormat1(tb testing.TB) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "format1.db")
	if err := os.WriteFile(path, unpack(tb, "format1.db.gz"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// unpack returns the content of a compressed file in testdata.
func unpack(tb testing.TB, name string) []byte {
	tb.Helper()
	packed, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	z, err := gzip.NewReader(packed)
	if err != nil {
		tb.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return content
}

var issued1 = time.Unix(2_000_000_000, 0).UTC()

// contents1 reads all that was written to the file of format 1, one line for each record.
func contents1(t *testing.T, s *Store) (lines []string) {
	t.Helper()
	note := func(name string, err error, claimed bool) {
		line := name
		switch {
		case errors.Is(err, grants.ErrNotFound):
			line += ": gone"
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case claimed:
			line += ": claimed"
		}
		lines = append(lines, line)
	}
	for _, group := range []struct {
		name string
		n    int
	}{{"settled", 60}, {"filler", 18}, {"bought", 4}, {"rotated", 4}} {
		for i := range group.n {
			name := fmt.Sprint(group.name, i)
			token, err := s.EarlierToken(t.Context(), secret.DigestOf(name))
			if err == nil && (token.ClientID != "c" || token.Username != "u" || !token.IssuedAt.Equal(issued1)) {
				t.Errorf("%s is %+v", name, token)
			}
			note(name, err, token.Claimed)
		}
	}
	for i := range 10 {
		name := fmt.Sprint("code", i)
		code, err := s.Code(t.Context(), secret.DigestOf(name))
		note(name, err, code.Claimed)
		name = fmt.Sprint("session", i)
		_, err = s.Session(t.Context(), secret.DigestOf(name))
		note(name, err, false)
		name = fmt.Sprint("family", i)
		revoked, err := s.Revoked(t.Context(), name)
		if !revoked {
			name += ": not revoked"
		}
		note(name, err, false)
	}
	return lines
}

// wanted1 is what contents1 has to return.
func wanted1() (lines []string) {
	group := func(name string, n int, state func(i int) string) {
		for i := range n {
			lines = append(lines, fmt.Sprint(name, i)+state(i))
		}
	}
	from := func(low, high int, state string) func(i int) string {
		return func(i int) string {
			if low <= i && i < high {
				return state
			}
			return ""
		}
	}
	none := from(0, 0, "")
	group("settled", 60, from(0, 4, ": claimed"))
	group("filler", 18, none)
	group("bought", 4, none)
	group("rotated", 4, none)
	for i := range 10 {
		lines = append(lines, fmt.Sprint("code", i)+from(0, 7, ": claimed")(i),
			fmt.Sprint("session", i)+from(4, 7, ": gone")(i), fmt.Sprint("family", i))
	}
	return lines
}

// TestFormat1: nothing of a file of an earlier release is lost, or found in an older state, and it is
// swept when it expires.
func TestFormat1(t *testing.T) {
	path := fileOfFormat1(t)
	for _, round := range []string{"converted", "opened again"} {
		s := mustOpen(t, path)
		if diff := cmp.Diff(wanted1(), contents1(t, s)); diff != "" {
			t.Errorf("%s, contents (-want +got):\n%s", round, diff)
		}
		if got := userNames(t, s); got != "u " {
			t.Errorf("%s, users are %q", round, got)
		}
		indexed(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := mustOpen(t, path)
	for _, sweep := range []struct {
		after time.Duration
		want  int
	}{
		{time.Hour, 0},
		{time.Hour + time.Millisecond, 60 + 18 + 4 + 4 + 10 + 7 + 7}, // families 4 to 6 were revoked for longer
		{2 * time.Hour, 0},
		{2*time.Hour + time.Millisecond, 3},
	} {
		if n, err := s.Sweep(t.Context(), issued1.Add(sweep.after)); n != sweep.want || err != nil {
			t.Errorf("the sweep after %s removed %d records, want %d (%v)", sweep.after, n, sweep.want, err)
		}
	}
	if n := indexed(t, s); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// TestFormat1Converted: an earlier release must refuse the file, for it would not find the journals.
func TestFormat1Converted(t *testing.T) {
	path := fileOfFormat1(t)
	if err := mustOpen(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		if found, err := checkFormat(tx); found != format || err != nil {
			t.Errorf("the format is %d, want %d (%v)", found, format, err)
		}
		return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if slices.ContainsFunc(journals, func(j []byte) bool { return string(j) == string(name) }) {
				t.Errorf("bucket %s is still there", name)
			}
			return nil
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFormat1Damaged: a file that cannot be converted is refused, and stays as it is.
func TestFormat1Damaged(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(tx *bolt.Tx) error
	}{
		{"an entry is cut short", func(tx *bolt.Tx) error {
			return tx.Bucket(journals[1]).Put([]byte("n"), []byte{byte(codes), 1, 2})
		}},
		{"an entry of what does not expire", func(tx *bolt.Tx) error {
			return tx.Bucket(journals[0]).Put([]byte("n"), make([]byte, 64))
		}},
		{"a journal is gone", func(tx *bolt.Tx) error { return tx.DeleteBucket(journals[0]) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := fileOfFormat1(t)
			change(t, path, test.change)
			for range 2 {
				if _, err := Open(path, Options{}); !errors.Is(err, ErrCorrupt) || strings.Contains(err.Error(), "panic") {
					t.Errorf("Open() = %v, want ErrCorrupt", err)
				}
			}
			change(t, path, func(tx *bolt.Tx) error {
				if n := tx.Bucket(journals[1]).Stats().KeyN; n < 9 {
					t.Errorf("%d entries are left in the newer journal, want 9", n)
				}
				return nil
			})
		})
	}
}
