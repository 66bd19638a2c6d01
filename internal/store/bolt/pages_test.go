package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// Layout of a bbolt page, in bytes and in the byte order of the machine. The header has the page
// number (8), the type (2), the number of elements (2) and the number of overflow pages (4). The
// elements follow.
const (
	pageHeader  = 16
	pageElement = 16
	branchPage  = 0x01
	leafPage    = 0x02
	freePage    = 0x10
	manyFree    = 0xFFFF // the count is then in the first element
)

// put writes a file to a directory of its own.
func put(t *testing.T, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data.db")
	check.OK(t, os.WriteFile(path, content, 0o600))
	return path
}

// branchOf returns the offset of a branch page in a file.
func branchOf(t *testing.T, content []byte) (at int) {
	t.Helper()
	for at = 2 * os.Getpagesize(); at < len(content); at += os.Getpagesize() {
		id, kind := binary.NativeEndian.Uint64(content[at:]), binary.NativeEndian.Uint16(content[at+8:])
		if kind == branchPage && id == uint64(at/os.Getpagesize()) {
			return at
		}
	}
	t.Fatal("there is no branch page: the test is blind")
	return 0
}

// freeListOf returns the offset of the list of free pages in a file.
func freeListOf(t *testing.T, content []byte) (at int) {
	t.Helper()
	var newest uint64
	for head := range 2 {
		field := func(at int) uint64 {
			return binary.NativeEndian.Uint64(content[head*os.Getpagesize()+pageHeader+at:])
		}
		if field(48) >= newest {
			newest, at = field(48), int(field(32))*os.Getpagesize()
		}
	}
	if n := binary.NativeEndian.Uint16(content[at+10:]); n == 0 || n == manyFree {
		t.Fatalf("%d pages are free: the test is blind", n)
	}
	return at
}

// TestInspectRefusesWhatBboltFollows: pages refer to each other in a circle, to pages outside the
// file, or to pages of another type. With some of these bbolt's cursor never returns.
func TestInspectRefusesWhatBboltFollows(t *testing.T) {
	path := filled(t)
	whole, err := os.ReadFile(path)
	check.OK(t, err)
	at := branchOf(t, whole)
	own := uint64(at / os.Getpagesize())
	second := at + pageHeader + pageElement
	list := freeListOf(t, whole)
	free := binary.NativeEndian.Uint16(whole[list+10:])
	child := int(binary.NativeEndian.Uint64(whole[second-pageElement+8:])) * os.Getpagesize()
	check.Equal(t, "kind of the first child", binary.NativeEndian.Uint16(whole[child+8:]), uint16(leafPage))
	last := child + pageHeader + pageElement*(int(binary.NativeEndian.Uint16(whole[child+10:]))-1)
	lastKey := last + int(binary.NativeEndian.Uint32(whole[last+4:]))
	for _, tt := range []struct {
		name string
		do   func(b []byte)
	}{
		{"its own child", func(b []byte) { binary.NativeEndian.PutUint64(b[second+8:], own) }},
		{"one child twice", func(b []byte) { copy(b[second+8:second+16], b[second+8-pageElement:]) }},
		{"a header as a child", func(b []byte) { binary.NativeEndian.PutUint64(b[second+8:], 0) }},
		{"a child after the end", func(b []byte) { binary.NativeEndian.PutUint64(b[second+8:], 1<<40) }},
		{"a key after the end", func(b []byte) { binary.NativeEndian.PutUint32(b[second:], 1<<31) }},
		{"a key that is long", func(b []byte) { binary.NativeEndian.PutUint32(b[second+4:], 1<<31) }},
		{"many elements", func(b []byte) { binary.NativeEndian.PutUint16(b[at+10:], 1<<15) }},
		{"no elements", func(b []byte) { binary.NativeEndian.PutUint16(b[at+10:], 0) }},
		{"many pages", func(b []byte) { binary.NativeEndian.PutUint32(b[at+12:], 1<<31) }},
		{"another number", func(b []byte) { b[at]++ }},
		{"of no kind", func(b []byte) { b[at+8] = 0x20 }},
		{"a list of free pages in the tree", func(b []byte) { b[at+8] = freePage }},
		{"a page that is used and free", func(b []byte) {
			binary.NativeEndian.PutUint64(b[list+pageHeader+8*int(free):], own)
			binary.NativeEndian.PutUint16(b[list+10:], free+1)
		}},
		{"a page that is neither", func(b []byte) { binary.NativeEndian.PutUint16(b[list+10:], free-1) }},
		{"a key of the next page", func(b []byte) { b[lastKey] = 0xFF }},
	} {
		damaged := bytes.Clone(whole)
		tt.do(damaged)
		if _, err := Inspect(t.Context(), put(t, damaged), nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: Inspect() = %v, want ErrCorrupt", tt.name, err)
		}
	}
}

// TestInspectEndsOnEveryFlip changes one byte after the other.
func TestInspectEndsOnEveryFlip(t *testing.T) {
	path := filled(t)
	var backup bytes.Buffer
	check.OK(t, CopyFile(t.Context(), path, &backup))
	whole := backup.Bytes()
	path = put(t, whole)
	refused, passed := 0, 0
	for at := 2 * os.Getpagesize(); at < len(whole); at += 1 + len(whole)/2000 {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		check.OK(t, err)
		_, err = f.WriteAt([]byte{whole[at] ^ 0x41}, int64(at))
		check.OK(t, err)
		_, err = Inspect(t.Context(), path, nil)
		switch {
		case err == nil:
			passed++
		case !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrNewerFormat),
			strings.Contains(err.Error(), "goroutine"):
			t.Errorf("byte %d: %v", at, err)
		default:
			refused++
		}
		_, err = f.WriteAt(whole[at:at+1], int64(at))
		check.OK(t, errors.Join(err, f.Close()))
	}
	t.Logf("of %d files %d are refused", refused+passed, refused)
	if refused == 0 || passed == 0 {
		t.Errorf("%d are refused, %d are not: the test is blind", refused, passed)
	}
}

// TestInspectRefusesWhatNoServerStartsWith: the file is intact, but data that a server reads at
// start is invalid.
func TestInspectRefusesWhatNoServerStartsWith(t *testing.T) {
	path := filled(t)
	needed := Readers{"things": func(r *store.Record) error {
		if len(r.Value) == 2 {
			return ErrCorrupt
		}
		return nil
	}}
	_, err := Inspect(t.Context(), path, needed)
	check.OK(t, err)
	s := mustOpen(t, path)
	_, err = s.Put(t.Context(), store.Table{Name: "things"}, store.Record{Key: "a", Value: []byte("{}")}, store.Seen{})
	check.OK(t, errors.Join(err, s.Close()))
	if _, err := Inspect(t.Context(), path, needed); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a record that a server needs: Inspect() = %v, want ErrCorrupt", err)
	}
}
