package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
)

// bbolt's file format, version 2: the first two pages hold a meta record each,
// and the newer valid one counts. It is read here before bbolt maps the file,
// because bbolt trusts it: a file that was cut short would fault, and in places
// in a goroutine of bbolt's own, where nothing can catch it.
const (
	pageHeader   = 16
	metaSize     = 64
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	freelistFlag = 0x10
	noFreelist   = ^uint64(0)
)

type boltMeta struct {
	pageSize, freelist, pages, txid uint64
}

// preflight reports whether the file is yet to be made, and refuses one that
// is foreign or cut short.
func preflight(path string) (created bool, err error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the data file
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%w: it is no regular file", ErrForeign)
	}
	if info.Size() == 0 { // made by mktemp, or by a process that is about to lay it out
		return true, nil
	}
	return false, checkFile(f, info.Size())
}

// checkFile is done as soon as one look finds nothing wrong. A file that
// changes between two looks is in use: its lock will tell.
func checkFile(f io.ReaderAt, size int64) error {
	before, err := newestMeta(f, size)
	if err != nil {
		return err
	}
	if err = checkPages(f, size, before); err == nil {
		return nil
	}
	if after, again := newestMeta(f, size); again == nil && after.txid != before.txid {
		return nil
	}
	return err
}

func checkPages(f io.ReaderAt, size int64, meta boltMeta) error {
	if there := uint64(size) / meta.pageSize; there < meta.pages { //nolint:gosec // a file's size is not negative
		return fmt.Errorf("%w: %d pages are missing at the end", ErrCorrupt, meta.pages-there)
	}
	if meta.freelist == noFreelist || meta.freelist >= meta.pages {
		return fmt.Errorf("%w: its list of free pages is not there", ErrForeign)
	}
	return checkFreelist(f, meta)
}

func newestMeta(f io.ReaderAt, size int64) (newest boltMeta, err error) {
	head := make([]byte, min(size, 128<<10))
	if _, err := f.ReadAt(head, 0); err != nil {
		return newest, err
	}
	marked, found := false, false
	for at := 0; at+pageHeader+metaSize <= len(head); at += 512 { // the second lies one page in, of any size
		m, magic, valid := parseMeta(head[at+pageHeader:])
		marked = marked || magic
		if valid && (at == 0 || uint64(at) == m.pageSize) && m.txid >= newest.txid {
			newest, found = m, true
		}
	}
	switch {
	case found:
		return newest, nil
	case marked:
		return newest, fmt.Errorf("%w: neither of its two headers is whole", ErrCorrupt)
	}
	return newest, ErrForeign
}

func parseMeta(b []byte) (m boltMeta, magic, valid bool) {
	le := binary.NativeEndian
	magic = le.Uint32(b) == boltMagic
	m = boltMeta{
		pageSize: uint64(le.Uint32(b[8:])), freelist: le.Uint64(b[32:]),
		pages: le.Uint64(b[40:]), txid: le.Uint64(b[48:]),
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	valid = magic && le.Uint32(b[4:]) == boltVersion && le.Uint64(b[56:]) == sum.Sum64() &&
		m.pageSize >= 512 && m.pageSize <= 64<<10
	return m, magic, valid
}

// checkFreelist checks the header of the page that bbolt reads when it opens:
// its number, its kind, and that it lists no more pages than there are.
func checkFreelist(f io.ReaderAt, meta boltMeta) error {
	head := make([]byte, pageHeader+8)
	if _, err := f.ReadAt(head, int64(meta.freelist*meta.pageSize)); err != nil { //nolint:gosec // within the file, as checked
		return err
	}
	le := binary.NativeEndian
	count := uint64(le.Uint16(head[10:]))
	if count == 0xFFFF {
		count = le.Uint64(head[16:])
	}
	if le.Uint64(head) != meta.freelist || le.Uint16(head[8:]) != freelistFlag || count > meta.pages {
		return fmt.Errorf("%w: its list of free pages cannot be read", ErrCorrupt)
	}
	return nil
}
