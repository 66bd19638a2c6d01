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
	check.OK(tb, err)
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
		c := code(time.Now())
		c.Digest = secret.DigestOf(string(rune('a' + i)))
		check.OK(tb, r.CreateGrant(tb.Context(), c))
	}
	var size int64
	err := s.view(tb.Context(), func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	check.OK(tb, errors.Join(err, s.Close()))
	b, err := os.ReadFile(path)
	check.OK(tb, err)
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
			check.OK(t, prepare(path))
			mustOpen(t, path)
			info, err := os.Stat(path)
			check.OK(t, err)
			check.Equal(t, "mode", info.Mode().Perm(), 0o600)
		})
	}
}

// TestOpenAddsNoPermission: a read-only file of its owner stays read-only, even if root, which may
// write it, opens it. Other users may not open it.
func TestOpenAddsNoPermission(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	check.OK(t, errors.Join(os.WriteFile(path, written(t), 0o600), os.Chmod(path, 0o400)))
	s, err := Open(path, Options{})
	switch {
	case err == nil:
		defer func() { _ = s.Close() }()
	case os.Geteuid() == 0 || !errors.Is(err, os.ErrPermission):
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	check.OK(t, err)
	check.Equal(t, "mode", info.Mode().Perm(), 0o400)
}

// TestErrorHasThePathOnce: errors of the operating system have the path, too.
func TestErrorHasThePathOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "data.db")
	_, opened := Open(path, Options{})
	_, inspected := Inspect(t.Context(), path, nil)
	for _, err := range []error{opened, inspected} {
		check.ErrorIs(t, err, fs.ErrNotExist)
		check.Equal(t, "paths in "+fmt.Sprint(err), strings.Count(fmt.Sprint(err), path), 1)
	}
}

// TestOpenLocked: another process holds the file.
func TestOpenLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	holder := exec.Command(os.Args[0], "-test.run=^$")
	holder.Env = append(os.Environ(), "BOLT_TEST_HOLD="+path)
	out, err := holder.StdoutPipe()
	check.OK(t, err)
	check.OK(t, holder.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("the other process did not open the file: %v", err)
	}
	_, err = Open(path, Options{})
	check.ErrorIs(t, err, ErrLocked)
	for _, part := range []string{path, "stop it first"} {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	mustOpen(t, path)
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
	check.ErrorIs(t, err, errReplaced, "Open")
	mustOpen(t, path)
	mustOpen(t, path+".kept") // not locked
}

// change changes a data file with bbolt itself.
func change(t *testing.T, path string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	check.OK(t, err)
	check.OK(t, errors.Join(db.Update(fn), db.Close()))
}

// blankFile makes a bbolt file without content.
func blankFile(path string) error {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	return db.Close()
}

// content returns a function that makes a file, which other users may read.
func content(b []byte) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		check.OK(t, os.WriteFile(path, b, 0o640))
	}
}

// changed returns a function that makes a data file and changes it with bbolt itself.
func changed(fn func(tx *bbolt.Tx) error) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		check.OK(t, mustOpen(t, path).Close())
		change(t, path, fn)
	}
}

// etcd makes a bbolt file of another program, without a list of free pages.
func etcd(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o640, &bbolt.Options{NoFreelistSync: true})
	check.OK(t, err)
	err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("key")); return err })
	check.OK(t, errors.Join(err, db.Close()))
}

func openAndClose(path string, o Options) error {
	s, err := Open(path, o)
	if err == nil {
		err = s.Close()
	}
	return err
}

// TestRefusedFiles: files and places that neither Open nor Inspect accepts, nor Hold if they are
// not of this program. They stay unchanged. Open initialises a file without content, unless it must
// exist.
func TestRefusedFiles(t *testing.T) {
	good := written(t)
	zeroMeta, tornMeta := bytes.Clone(good), bytes.Clone(good)
	clear(zeroMeta[:2*4096])
	tornMeta[pageHeader+20]++
	tornMeta[4096+pageHeader+20]++
	putFormat := func(n uint64) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(metaBucket)).Put(formatKey, binary.BigEndian.AppendUint64(nil, n))
		}
	}
	for _, test := range []struct {
		name  string
		make  func(t *testing.T, path string)
		want  error
		isNew bool // Open makes it a data file
	}{
		{"text", content([]byte(strings.Repeat("not a database\n", 1000))), ErrForeign, false},
		{"one byte", content([]byte("x")), ErrForeign, false},
		{"zeroes", content(make([]byte, 64<<10)), ErrForeign, false},
		{"headers wiped", content(zeroMeta), ErrForeign, false},
		{"both headers damaged", content(tornMeta), ErrCorrupt, false},
		{"the list of free pages damaged", content(withoutFreePages(good)), ErrCorrupt, false},
		{"cut short", content(good[:5*4096]), ErrCorrupt, false},
		{"cut by a page", content(good[:len(good)-4096]), ErrCorrupt, false},
		{"cut by a byte", content(good[:len(good)-1]), ErrCorrupt, false},
		{"cut in the second page", content(good[:5000]), ErrCorrupt, false},
		{"cut in the first page", content(good[:1000]), ErrCorrupt, false},
		{"a newer format", changed(putFormat(format + 1)), ErrNewerFormat, false},
		{"a format of a development version", changed(putFormat(format - 1)), ErrForeign, false},
		{"no format", changed(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(metaBucket)).Delete(formatKey) }), ErrForeign, false},
		{"another program's", etcd, ErrForeign, false},
		{"a directory", func(t *testing.T, path string) { t.Helper(); check.OK(t, os.Mkdir(path, 0o700)) }, ErrForeign, false},
		{"nothing", func(*testing.T, string) {}, os.ErrNotExist, true},
		{"an empty file", content(nil), ErrForeign, true},
		{"without content", func(t *testing.T, path string) { t.Helper(); check.OK(t, blankFile(path)) }, ErrForeign, true},
	} {
		for name, call := range map[string]func(path string) error{
			"Inspect": func(path string) error { _, err := Inspect(t.Context(), path, nil); return err },
			"Hold": func(path string) error {
				h, err := Hold(path)
				if err == nil {
					err = h.Release()
				}
				return err
			},
			"Open":                     func(path string) error { return openAndClose(path, Options{}) },
			"Open of an existing file": func(path string) error { return openAndClose(path, Options{Existing: true}) },
		} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				path, want := filepath.Join(t.TempDir(), "data.db"), test.want
				test.make(t, path)
				before, _ := os.ReadFile(path)
				info, _ := os.Stat(path)
				if test.isNew && (name == "Open" || name == "Hold") || name == "Hold" && !errors.Is(want, ErrForeign) {
					want = nil
				}
				err := call(path)
				if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), path) {
					t.Errorf("got %v, want %v with the path", err, want)
				}
				after, _ := os.ReadFile(path)
				if now, _ := os.Stat(path); want != nil && info != nil && (!bytes.Equal(after, before) || now.Mode() != info.Mode()) {
					t.Errorf("the refused file was changed, or its mode is %o", now.Mode())
				}
			})
		}
	}
	link := filepath.Join(t.TempDir(), "data.db")
	check.OK(t, os.Symlink(link+".none", link))
	if _, err := Hold(link); !errors.Is(err, ErrForeign) {
		t.Errorf("a link to nothing: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing", "data.db"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}
