package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// mapSize is how much of the file is mapped at first. It is address space, not memory. A write for which the
// file has to be mapped anew waits for all readers, a copy among them, so that should never be. On Windows,
// the file itself grows to this size.
func mapSize() int {
	if strconv.IntSize == 64 && runtime.GOOS != "windows" {
		return 256 * smallMap
	}
	return smallMap
}

const smallMap = 64 << 20

// Open opens the file, and creates it with mode 0600 if it does not exist, unless it has to. It takes the permissions of
// all other users away, because the file holds the signing keys, and leaves those of its owner as they
// are. Errors are those of this package, or of the operating system, with the path.
func Open(path string, opts Options) (s *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("embedded: open %s: %w", path, err)
		}
		if errors.Is(err, ErrCorrupt) {
			err = fmt.Errorf("%w; restore it from a backup", err)
		}
	}()
	if info, err := os.Stat(path); opts.Existing || err == nil && (info.Size() > 0 || !info.Mode().IsRegular()) {
		// For writing, bbolt would first read the list of free pages and, if another program keeps none
		// (bbolt's NoFreelistSync), make one. For that it walks over all pages in a goroutine of its own,
		// where a panic over a damaged page cannot be recovered.
		if err := readFile(path, opts, func(*bolt.Tx, int64) error { return nil }); err != nil {
			return nil, err
		}
	}
	db, err := openFile(path, opts, false)
	if err != nil {
		return nil, err
	}
	err = prepare(db, path)
	switch {
	case errors.Is(err, errPanicked):
		return nil, err // closing might wait for a lock for ever
	case err != nil:
		return nil, errors.Join(err, db.Close())
	}
	return newStore(db), nil
}

// readFile opens a data file for reading and calls fn with its size, unless it is one of another program, cut
// short, or has nothing in it although it has to. Others may read it too.
func readFile(path string, opts Options, fn func(tx *bolt.Tx, size int64) error) (err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is no regular file", ErrForeign)
	case info.Size() == 0: // bbolt would lay it out
		return fmt.Errorf("%w: it is empty", ErrForeign)
	}
	db, opened, err := openLocked(path, opts, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer guardFile(&err)()
	return db.View(func(tx *bolt.Tx) error {
		info, err := opened.Stat() // not before: until it was locked, the file could grow
		if err != nil {
			return err
		}
		if missing := tx.Size() - info.Size(); missing > 0 {
			return fmt.Errorf("%w: %d bytes are missing at the end", ErrCorrupt, missing)
		}
		found, err := checkFormat(tx)
		switch {
		case err != nil:
			return err
		case found == blank && opts.Existing:
			return fmt.Errorf("%w: there is nothing in it", ErrForeign)
		}
		return fn(tx, info.Size())
	})
}

// openFile opens the file with bbolt; see [openLocked].
func openFile(path string, opts Options, readOnly bool) (*bolt.DB, error) {
	db, _, err := openLocked(path, opts, readOnly)
	return db, err
}

// openings is how many files are opened at most to find the one that has the name.
const openings = 3

// openLocked opens the file that has the name when it is locked. bbolt opens a file first and then waits for
// its lock, so a restoration can replace it meanwhile: what is written to the former one would be lost.
func openLocked(path string, opts Options, readOnly bool) (db *bolt.DB, f *os.File, err error) {
	for range openings {
		if db, f, err = openOnce(path, opts, readOnly); err != nil {
			return nil, nil, err
		}
		if err = checkName(f, path); err == nil {
			return db, f, nil
		}
		if err = errors.Join(err, db.Close()); !errors.Is(err, errReplaced) {
			break
		}
	}
	return nil, nil, err
}

// checkName returns [errReplaced] unless the file has the name.
func checkName(f *os.File, path string) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err == nil && !os.SameFile(is, named) {
		return errReplaced
	}
	return err
}

// openOnce opens a file with bbolt, and returns its errors as those of this package. If bbolt panics,
// over a damaged list of free pages, the file stays mapped and locked until the process ends.
func openOnce(path string, opts Options, readOnly bool) (db *bolt.DB, f *os.File, err error) {
	defer guardFile(&err)()
	open := opts.open
	if open == nil {
		open = os.OpenFile
	}
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		ReadOnly:        readOnly,
		PreLoadFreelist: opts.checked,
		Timeout:         cmp.Or(opts.LockTimeout, DefaultLockTimeout),
		FreelistType:    bolt.FreelistArrayType,
		InitialMmapSize: mapSize(),
		MaxSize:         opts.MaxSize,
		OpenFile: func(name string, flag int, mode fs.FileMode) (*os.File, error) {
			opened, err := open(name, flag, mode)
			if f == nil { // bbolt opens it again for copies, at any time
				f = opened
			}
			return opened, err
		},
		NoStatistics: true, // they cost a lock on every read, and are not used
	})
	var system syscall.Errno
	var named *fs.PathError
	switch {
	case err == nil || errors.As(err, &system) || errors.As(err, &named):
		return db, f, err
	case errors.Is(err, berrors.ErrTimeout):
		return nil, nil, ErrLocked
	case errors.Is(err, berrors.ErrVersionMismatch) || !isBolt(path):
		return nil, nil, fmt.Errorf("%w: %w", ErrForeign, err)
	default: // a header is damaged, or the file has not two pages
		return nil, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
}

// isBolt reports whether the file begins as all of bbolt do: with the header of a page and a magic
// number.
func isBolt(path string) bool {
	f, err := os.Open(path) //nolint:gosec // the operator names the data file
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 20)
	_, err = io.ReadFull(f, head)
	return err == nil && binary.NativeEndian.Uint32(head[16:]) == 0xED0CDAED
}

// prepare closes the file to other users, and lays it out as this release does.
func prepare(db *bolt.DB, path string) (err error) {
	defer guardFile(&err)()
	if err := closeToOthers(path); err != nil {
		return err
	}
	var found uint64
	err = db.View(func(tx *bolt.Tx) (err error) {
		found, err = checkFormat(tx)
		return err
	})
	switch {
	case err != nil:
		return err
	case found == blank:
		return errors.Join(db.Update(layOut), SyncDirectory(filepath.Dir(path)))
	}
	return nil
}

// closeToOthers takes the permissions of all users but the owner away.
func closeToOthers(path string) error {
	const owner fs.FileMode = 0o700
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&^owner == 0 {
		return err
	}
	return os.Chmod(path, info.Mode().Perm()&owner)
}
