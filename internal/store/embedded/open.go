package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// initialMmapSize is address space, not memory. Until the file outgrows it, the map need not be made
// anew, for which all readers would have to wait.
const initialMmapSize = 64 << 20

// Open opens the file, and creates it with mode 0600 if it does not exist. It takes the permissions of
// all other users away, because the file holds the signing keys. Errors are those of this package,
// or of the operating system, with the path.
func Open(path string, opts Options) (s *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("embedded: open %s: %w", path, err)
		}
	}()
	if opts.LockTimeout == 0 {
		opts.LockTimeout = DefaultLockTimeout
	}
	created, err := preflight(path)
	if err != nil {
		return nil, err
	}
	db, err := openFile(path, opts)
	if err != nil {
		return nil, err
	}
	if err := prepare(db, path, created); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db: db, writes: newCommitter(db)}, nil
}

// openFile opens the file with bbolt, and returns its errors as those of this package.
func openFile(path string, opts Options) (db *bolt.DB, err error) {
	defer guard(&err)()
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         opts.LockTimeout,
		FreelistType:    bolt.FreelistArrayType,
		InitialMmapSize: initialMmapSize,
		MaxSize:         opts.MaxSize,
		NoStatistics:    true, // they cost a lock on every read, and are not used
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch):
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	case errors.Is(err, berrors.ErrChecksum):
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return db, err
}

// prepare closes the file to other users, and lays it out as this release does.
func prepare(db *bolt.DB, path string, created bool) (err error) {
	defer guard(&err)()
	if err := os.Chmod(path, 0o600); err != nil {
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
		if err := db.Update(layOut); err != nil || !created {
			return err
		}
		return syncDirectory(filepath.Dir(path))
	case found == journaled:
		return db.Update(foldJournals)
	}
	return nil
}

// syncDirectory makes the new file's name durable; bbolt syncs its content only.
func syncDirectory(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the operator names the data file
	if err != nil {
		return err
	}
	// Some systems cannot sync a directory, and need not.
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}
