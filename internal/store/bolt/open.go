package bolt

import (
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
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// lockTimeout is how long Open waits for another process that is about to close the file.
const lockTimeout = 200 * time.Millisecond

// mapSize is how much of the file is mapped at first. It is address space, not memory. If the file
// outgrows the map, a write has to map it again and waits for all readers, including copies.
// mapSize is large enough to avoid that. On Windows, the file itself grows to this size.
func mapSize() int {
	if strconv.IntSize == 64 && runtime.GOOS != "windows" {
		return 256 * smallMap
	}
	return smallMap
}

const smallMap = 64 << 20 // for a file that does not grow, and where address space is limited (ulimit -v)

// Open opens the file. If the file does not exist, Open creates it with mode 0600, unless
// [Options].Existing is set. It removes the permissions of all other users, because the file holds
// the signing keys, and keeps the owner's permissions. Errors are the errors of this package or of
// the operating system, with the path.
func Open(path string, opts Options) (s *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bolt: open %s: %w", path, withoutPath(err))
		}
		if errors.Is(err, ErrCorrupt) {
			err = fmt.Errorf("%w; restore it from a backup", err)
		}
	}()
	defer guard(&err, false)() // the file then stays open: closing it could wait for a lock forever
	// Read first. When bbolt opens a file for writing, it reads the list of free pages, or builds
	// the list if the file has none (NoFreelistSync, as etcd uses it). Building it walks over all
	// pages in a goroutine of bbolt, where a panic over a damaged page cannot be recovered.
	err = readFile(path, opts, func(*bbolt.Tx) error { return nil })
	if isNew := errors.Is(err, fs.ErrNotExist) || errors.Is(err, errBlank); err != nil && (opts.Existing || !isNew) {
		return nil, err
	}
	db, f, err := openFile(path, opts, false)
	if err != nil {
		return nil, err
	}
	if err := prepare(db, f, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return newStore(db), nil
}

// withoutPath returns an error of the operating system without its path, for a caller that adds it.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && at.Error() == err.Error() {
		return at.Err
	}
	return err
}

// errBlank is returned for a file without content.
var errBlank = fmt.Errorf("%w: it is empty", ErrForeign)

// readFile opens a data file for reading and calls fn, unless the file is foreign, truncated or blank. Other
// processes may read it too.
func readFile(path string, opts Options, fn func(tx *bbolt.Tx) error) (err error) {
	defer guard(&err, false)()
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", ErrForeign)
	case info.Size() == 0: // bbolt would initialise it
		return errBlank
	}
	db, f, err := openFile(path, opts, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bbolt.Tx) error {
		info, err := f.Stat() // only now: the file could grow until it was locked
		if err != nil {
			return err
		}
		if missing := tx.Size() - info.Size(); missing > 0 {
			return fmt.Errorf("%w: %d bytes are missing at the end", ErrCorrupt, missing)
		}
		if err := checkFormat(tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// openFile opens a file with bbolt, and converts its errors to errors of this package. If bbolt
// panics over a damaged list of free pages, the file stays mapped and locked until the process
// ends.
func openFile(path string, opts Options, readOnly bool) (db *bbolt.DB, f *os.File, err error) {
	open, size := opts.open, smallMap
	if open == nil {
		open = os.OpenFile
		if !readOnly {
			size = mapSize()
		}
	}
	options := bbolt.Options{
		ReadOnly:        readOnly,
		PreLoadFreelist: opts.checked,
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistArrayType,
		InitialMmapSize: size,
		MaxSize:         opts.maxSize,
		OpenFile: func(name string, flag int, mode fs.FileMode) (*os.File, error) {
			opened, err := open(name, flag, mode)
			if f == nil { // bbolt opens it again for copies, several at once
				f = opened
			}
			return opened, err
		},
		NoStatistics: true, // they cost a lock per read and are not used
	}
	db, err = bbolt.Open(path, 0o600, &options)
	if errors.Is(err, syscall.ENOMEM) && size > smallMap {
		options.InitialMmapSize, f = smallMap, nil
		db, err = bbolt.Open(path, 0o600, &options)
	}
	var system syscall.Errno
	switch {
	case err == nil || errors.As(err, &system):
		return db, f, err
	case errors.Is(err, berrors.ErrTimeout):
		return nil, nil, ErrLocked
	case errors.Is(err, berrors.ErrVersionMismatch) || !isBolt(path):
		return nil, nil, fmt.Errorf("%w: %w", ErrForeign, err)
	default: // a header is damaged, or the file has fewer than two pages
		return nil, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
}

// isBolt reports whether the file begins like every bbolt file: with a page header and a magic
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

// prepare removes the permissions of other users from a file that was opened for writing, and
// initialises it if it is blank. bbolt opens a file and then waits for its lock, so a restoration
// can replace the file in between. Writes to the former file would be lost.
func prepare(db *bbolt.DB, f *os.File, path string) error {
	const owner fs.FileMode = 0o700
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(path); err != nil || !os.SameFile(info, named) {
		return errors.Join(errReplaced, err)
	}
	if mode := info.Mode().Perm(); mode&^owner != 0 {
		if err := f.Chmod(mode & owner); err != nil {
			return err
		}
	}
	err = db.View(checkFormat)
	if errors.Is(err, errBlank) {
		err = errors.Join(db.Update(layOut), SyncDirectory(filepath.Dir(path)))
	}
	return err
}

// format is the version of the layout. It increases when an older release could misread data of a
// newer one.
const format = 5

// metaBucket holds the format. It is neither a table nor the trail.
const metaBucket = "meta"

var formatKey = []byte("format")

// checkFormat returns an error unless a file has the format of this release. The error is errBlank,
// another [ErrForeign], or [ErrNewerFormat].
func checkFormat(tx *bbolt.Tx) error {
	if first, _ := tx.Cursor().First(); first == nil {
		return errBlank
	}
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil {
		return fmt.Errorf("%w: it is a bbolt file of another program", ErrForeign)
	}
	value := meta.Get(formatKey)
	if len(value) != 8 {
		return fmt.Errorf("%w: it has no format version", ErrForeign)
	}
	switch found := binary.BigEndian.Uint64(value); {
	case found < format:
		return fmt.Errorf("%w: a development version wrote it, in format %d", ErrForeign, found)
	case found > format:
		return fmt.Errorf("%w (format %d, this release knows %d)", ErrNewerFormat, found, format)
	}
	return nil
}

func layOut(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucketIfNotExists([]byte(metaBucket))
	if err != nil {
		return err
	}
	return meta.Put(formatKey, binary.BigEndian.AppendUint64(nil, format))
}

// SyncDirectory makes the name of a new file durable; bbolt syncs its content only.
func SyncDirectory(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	// Some systems cannot sync a directory, and need not.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}
