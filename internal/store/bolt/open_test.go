package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

func mustOpen(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// written returns the pages of a data file with some content.
func written(tb testing.TB) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "written.db")
	s := mustOpen(tb, path)
	r := grants.NewRepository(s)
	for i := range 200 {
		c := benchCode(time.Now())
		c.Digest = secret.DigestOf(string(rune('a' + i)))
		if err := r.CreateGrant(tb.Context(), c); err != nil {
			tb.Fatal(err)
		}
	}
	var size int64
	err := s.view(tb.Context(), func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	if err := errors.Join(err, s.Close()); err != nil {
		tb.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b[:size] // without the space that bbolt reserves for growth
}

func TestOpenMode(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"a new file":       func(string) error { return nil },
		"an empty file":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"readable by all":  func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"an existing file": func(path string) error { return os.WriteFile(path, written(t), 0o664) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data.db")
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			mustOpen(t, path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("mode %o, want 600", info.Mode().Perm())
			}
		})
	}
}

// TestOpenAddsNoPermission: a read-only file of its owner stays read-only, even if root, which may
// write it, opens it. Other users may not open it.
func TestOpenAddsNoPermission(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := errors.Join(os.WriteFile(path, written(t), 0o600), os.Chmod(path, 0o400)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{})
	switch {
	case err == nil:
		defer func() { _ = s.Close() }()
	case os.Geteuid() == 0 || !errors.Is(err, os.ErrPermission):
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o400 {
		t.Errorf("mode %o, want 400 as before", info.Mode().Perm())
	}
}

// TestOpenLocked: another process holds the file.
func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	holder := exec.Command(os.Args[0], "-test.run=^$")
	holder.Env = append(os.Environ(), "BOLT_TEST_HOLD="+path)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the other process did not open the file: %v", err)
	}
	_, err = Open(path, Options{})
	if !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	for _, part := range []string{path, "stop that server", "admin API"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	mustOpen(t, path)
}

func TestOpenRefuses(t *testing.T) {
	good := written(t)
	zeroMeta := bytes.Clone(good)
	clear(zeroMeta[:2*4096])
	const pageHeader = 16
	tornMeta := bytes.Clone(good)
	tornMeta[pageHeader+20]++
	tornMeta[4096+pageHeader+20]++
	for _, test := range []struct {
		name    string
		content []byte
		want    error
	}{
		{"text", []byte(strings.Repeat("not a database\n", 1000)), ErrForeign},
		{"one byte", []byte("x"), ErrForeign},
		{"zeroes", make([]byte, 64<<10), ErrForeign},
		{"headers wiped", zeroMeta, ErrForeign},
		{"both headers damaged", tornMeta, ErrCorrupt},
		{"the list of free pages damaged", withoutFreePages(good), ErrCorrupt},
		{"cut short", good[:5*4096], ErrCorrupt},
		{"cut by a page", good[:len(good)-4096], ErrCorrupt},
		{"cut by a byte", good[:len(good)-1], ErrCorrupt},
		{"cut in the second page", good[:5000], ErrCorrupt},
		{"cut in the first page", good[:1000], ErrCorrupt},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data.db")
			if err := os.WriteFile(path, test.content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path, Options{})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %v with the path", err, test.want)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, test.content) {
				t.Errorf("the refused file was changed (%v)", err)
			}
		})
	}
}

// withoutFreePages returns a copy of a file with its lists of free pages damaged.
func withoutFreePages(content []byte) []byte {
	damaged := bytes.Clone(content)
	for page := 0; page < len(damaged); page += 4096 {
		if flags := damaged[page+8 : page+10]; binary.NativeEndian.Uint16(flags) == freePage {
			binary.NativeEndian.PutUint16(flags, 0x80)
		}
	}
	return damaged
}

func TestOpenRefusesPlaces(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrForeign) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "missing", "data.db"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

// TestOpenRefusesContent changes the content behind the store's back.
func TestOpenRefusesContent(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(tx *bbolt.Tx) error
		want   error
	}{
		{"a newer format", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(metaBucket)).Put(formatKey, binary.BigEndian.AppendUint64(nil, format+1))
		}, ErrNewerFormat},
		{"a format of a development version", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(metaBucket)).Put(formatKey, binary.BigEndian.AppendUint64(nil, format-1))
		}, ErrForeign},
		{"no format", func(tx *bbolt.Tx) error { return tx.Bucket([]byte(metaBucket)).Delete(formatKey) }, ErrForeign},
		{"another program's", func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("x"))
			return errors.Join(err, tx.DeleteBucket([]byte(metaBucket)))
		}, ErrForeign},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data.db")
			behind(t, path, test.change)
			if _, err := Open(path, Options{}); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// TestOpenLeavesForeign: Open changes neither the content nor the permissions of another program's
// bbolt file, even if the file keeps no list of free pages, as etcd's files.
func TestOpenLeavesForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "member.db")
	db, err := bbolt.Open(path, 0o640, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("key"))
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, ErrForeign) {
		t.Errorf("Open() = %v, want ErrForeign", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) || info.Mode().Perm() != 0o640 {
		t.Errorf("the refused file was changed, or its mode is %o (%v)", info.Mode().Perm(), err)
	}
}

// TestOpenWhileItIsReplaced: a restoration ends while a starting server waits for the lock. The
// server would otherwise write to the former file.
func TestOpenWhileItIsReplaced(t *testing.T) {
	path, prepared := put(t, written(t)), put(t, written(t))
	replace := sync.OnceFunc(func() {
		check.OK(t, Replace(path, prepared, path+".kept"))
	})
	_, err := Open(path, Options{open: func(name string, flag int, mode fs.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		if flag&os.O_RDWR != 0 {
			replace()
		}
		return f, err
	}})
	if !errors.Is(err, errReplaced) {
		t.Errorf("Open() = %v, want errReplaced", err)
	}
	mustOpen(t, path)
	mustOpen(t, path+".kept") // not locked
}

// behind makes a data file and changes it with bbolt itself.
func behind(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	if err := mustOpen(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	change(t, path, fn)
}

// change changes a data file with bbolt itself.
func change(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOpenExisting: Existing neither creates a missing file nor initialises an empty one.
func TestOpenExisting(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"none":        func(string) error { return nil },
		"empty":       func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"blank":       blankFile,
		"a data file": func(path string) error { return os.WriteFile(path, written(t), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data.db")
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			s, err := Open(path, Options{Existing: true})
			if name == "a data file" {
				if err := errors.Join(err, s.Close()); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrForeign) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the error is %v", err)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// blankFile makes a bbolt file without content.
func blankFile(path string) error {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	return db.Close()
}
