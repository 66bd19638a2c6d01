package adminlocal

import (
	"os"
	"path/filepath"
	"testing"

	"oauth-server/internal/check"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	data, link := filepath.Join(dir, "data.db"), filepath.Join(dir, "link.db")
	check.OK(t, os.WriteFile(data, nil, 0o600))
	check.OK(t, os.Symlink("data.db", link))
	_, err := Read(data)
	check.ErrorIs(t, err, ErrNone)
	first, second := New("http://127.0.0.1:1"), New("http://127.0.0.1:2")
	check.OK(t, first.Write(link))
	info, err := os.Stat(data + ".admin")
	check.OK(t, err)
	check.Equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	check.OK(t, second.Write(data)) // replaces a left-over file
	got, err := Read(link)
	check.OK(t, err)
	check.Equal(t, "access", got, second)
	check.OK(t, first.Remove(data))
	if _, err := Read(data); err != nil {
		t.Errorf("the file of another server was removed: %v", err)
	}
	check.OK(t, second.Remove(data))
	check.OK(t, second.Remove(data))
	entries, err := os.ReadDir(dir)
	check.OK(t, err)
	check.Equal(t, "files that are left", len(entries), 2)
	for _, text := range []string{"", "{}", "not JSON", `{"url": "http://x"}`} {
		check.OK(t, os.WriteFile(data+".admin", []byte(text), 0o600))
		_, err = Read(data)
		check.ErrorIs(t, err, ErrNone)
	}
}

// The token and a proof cannot be derived from each other, nor from another key.
func TestDerived(t *testing.T) {
	a, b := New("x"), New("x")
	seen := map[string]bool{}
	for _, s := range []string{a.Token(), b.Token(), a.Proof(""), a.Proof("token"), b.Proof("token"), "local-" + a.Proof("token")} {
		if seen[s] {
			t.Errorf("%s twice", s)
		}
		seen[s] = true
	}
	check.Equal(t, "a proof again", a.Proof("x"), a.Proof("x"))
}
