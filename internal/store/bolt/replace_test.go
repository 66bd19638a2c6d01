package bolt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"oauth-server/internal/check"
)

func putAt(t *testing.T, path, content string) {
	t.Helper()
	check.OK(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	data, kept := filepath.Join(dir, "data.db"), filepath.Join(dir, "kept")
	for _, content := range []string{"first", "second"} {
		putAt(t, filepath.Join(dir, "p"), content)
		check.OK(t, Replace(data, filepath.Join(dir, "p"), kept))
	}
	putAt(t, filepath.Join(dir, "p"), "third")
	check.ErrorIs(t, Replace(data, filepath.Join(dir, "p"), kept), os.ErrExist, "over one that is kept")
	for path, want := range map[string]string{data: "second", kept: "first", filepath.Join(dir, "p"): "third"} {
		got, err := os.ReadFile(path)
		check.OK(t, err)
		check.Equal(t, path, string(got), want)
	}
}

func TestHold(t *testing.T) {
	path := filled(t)
	held, err := Hold(path)
	check.OK(t, err)
	if _, err := Open(path, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("Open() of a file that is held: %v", err)
	}
	if _, err := Hold(path); !errors.Is(err, ErrLocked) {
		t.Errorf("Hold() of a file that is held: %v", err)
	}
	check.OK(t, held.Release())
	mustOpen(t, path)
	if _, err := Hold(path); !errors.Is(err, ErrLocked) {
		t.Errorf("Hold() of a file that is open: %v", err)
	}
}

// TestReplaceEmpty: an empty file cannot be held, so Replace checks whether it has changed since.
func TestReplaceEmpty(t *testing.T) {
	for _, laidOut := range []bool{false, true} {
		dir := t.TempDir()
		data, prepared := filepath.Join(dir, "data.db"), filepath.Join(dir, "p")
		putAt(t, data, "")
		putAt(t, prepared, "new")
		held, err := Hold(data)
		check.OK(t, err)
		if laidOut {
			mustOpen(t, data)
		}
		check.Equal(t, "refused", errors.Is(held.Replace(prepared, data+".kept"), errReplaced), laidOut)
	}
}

// TestReplaceIsUndone: after an error at any step the former file is in place again. Only the
// prepared file may be left besides it, if it was not moved.
func TestReplaceIsUndone(t *testing.T) {
	broken := errors.New("broken disk")
	for _, there := range []bool{true, false} {
		steps := 1
		if there {
			steps = 2
		}
		for fails := range steps {
			dir := t.TempDir()
			data, prepared, kept := filepath.Join(dir, "data.db"), filepath.Join(dir, "p"), filepath.Join(dir, "kept")
			putAt(t, prepared, "new")
			want := []string{}
			if there {
				putAt(t, data, "former")
				want = append(want, "data.db")
			}
			if fails == 0 || !there {
				want = append(want, "p")
			}
			syncs := -1
			err := replace(data, prepared, kept, func(string) error {
				if syncs++; syncs == fails {
					return broken
				}
				return nil
			})
			check.ErrorIs(t, err, broken, "replace")
			var left []string
			entries, err := os.ReadDir(dir)
			check.OK(t, err)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			check.Equal(t, "files", left, want)
			if there {
				got, err := os.ReadFile(data)
				check.OK(t, err)
				check.Equal(t, "the data file", string(got), "former")
			}
		}
	}
}

// TestReplaceTakesNoNewFile: a server started without a data file and created one. Replace keeps
// that file.
func TestReplaceTakesNoNewFile(t *testing.T) {
	data, prepared := filepath.Join(t.TempDir(), "data.db"), put(t, written(t))
	mustOpen(t, data)
	check.ErrorIs(t, place(data, prepared, SyncDirectory), errReplaced, "place")
	if _, err := Open(data, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("Open() = %v: the server has another file", err)
	}
	_, err := os.Stat(prepared)
	check.OK(t, err)
}

// TestTwoHold: a missing or damaged file can be held twice, but then only the first restoration
// succeeds: after it, a server may have started.
func TestTwoHold(t *testing.T) {
	none, damaged := filepath.Join(t.TempDir(), "none.db"), put(t, written(t)[:5000])
	for _, data := range []string{none, damaged} {
		one, err := Hold(data)
		check.OK(t, err)
		two, err := Hold(data)
		check.OK(t, err)
		for _, name := range []string{".one", ".two"} {
			putAt(t, data+name, name)
		}
		check.OK(t, one.Replace(data+".one", data+".kept1"))
		check.ErrorIs(t, two.Replace(data+".two", data+".kept2"), errReplaced, "the second")
		check.OK(t, errors.Join(one.Release(), two.Release()))
		got, err := os.ReadFile(data)
		check.OK(t, err)
		check.Equal(t, "the data file", string(got), ".one")
	}
}

// TestPrepareWritesToItsOwnFileOnly: during a restoration by root, the account that owns the
// directory makes the name of the prepared file lead to another file.
func TestPrepareWritesToItsOwnFileOnly(t *testing.T) {
	backup := filled(t)
	other := filled(t)
	before, err := os.ReadFile(other)
	check.OK(t, err)
	missing := filepath.Join(t.TempDir(), "none.db")
	for _, swap := range map[string]func(name string) error{
		"a link to it":        func(name string) error { return os.Symlink(other, name) },
		"the file":            func(name string) error { return os.Link(other, name) },
		"a link that dangles": func(name string) error { return os.Symlink(missing, name) },
		"a link beside it": func(name string) error {
			return errors.Join(os.Link(other, name+".other"), os.Symlink(filepath.Base(name)+".other", name))
		},
	} {
		f, err := os.CreateTemp(t.TempDir(), "data.db.restore-*")
		check.OK(t, err)
		check.OK(t, CopyFile(t.Context(), backup, f))
		check.OK(t, errors.Join(os.Remove(f.Name()), swap(f.Name())))
		check.OK(t, complete(t.Context(), f, nil, restored)) // to the file that no longer has a name
	}
	after, err := os.ReadFile(other)
	check.OK(t, err)
	check.Equal(t, "the other file is as it was", bytes.Equal(before, after), true)
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is made where the link leads: %v", err)
	}
}
