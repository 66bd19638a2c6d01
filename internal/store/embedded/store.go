package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/syncer"
)

// Store is the embedded backend. It is safe for concurrent use.
type Store struct {
	db        *bolt.DB
	writes    *committer
	instances syncer.Roster
}

var _ interface {
	clientcfg.Store
	clientcfg.Registry
	clientcfg.PolicyStore
	clientcfg.AuditLog
	keys.Store
	grants.Codes
	grants.RefreshTokens
	grants.Revocations
	grants.Users
	grants.UserRegistry
	grants.Sessions
	grants.Sweeper
	syncer.Store
	syncer.Instances
} = (*Store)(nil)

// Options tune a store. The zero value is good.
type Options struct {
	// LockTimeout is how long to wait for another process to let go of the
	// file; 0 means [DefaultLockTimeout].
	LockTimeout time.Duration
	// MaxSize bounds the file, in bytes; writes beyond it fail and change
	// nothing. 0 means no bound.
	MaxSize int

	foldAt int // see the constant; tests make it small
}

// DefaultLockTimeout is long enough for a lock that is just being released.
const DefaultLockTimeout = 200 * time.Millisecond

// initialMmapSize is address space, not memory: the map need not be made anew,
// with all readers waiting, before the file outgrows it.
const initialMmapSize = 64 << 20

// Open opens the file, making it with mode 0600 if it is not there. A file
// that others may read is closed to them: it holds the signing keys.
func Open(path string, opts Options) (s *Store, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("embedded: open %s: %w", path, err)
		}
	}()
	if opts.foldAt == 0 {
		opts.foldAt = foldAt
	}
	created, err := preflight(path)
	if err != nil {
		return nil, err
	}
	db, err := openFile(path, opts)
	if err != nil {
		return nil, err
	}
	if err = prepare(db, path, created); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	writes, err := newCommitter(db, opts.foldAt)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db: db, writes: writes}, nil
}

func openFile(path string, opts Options) (db *bolt.DB, err error) {
	defer guard(&err)()
	if opts.LockTimeout == 0 {
		opts.LockTimeout = DefaultLockTimeout
	}
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         opts.LockTimeout,
		FreelistType:    bolt.FreelistArrayType,
		InitialMmapSize: initialMmapSize,
		MaxSize:         opts.MaxSize,
		NoStatistics:    true, // a lock on every read, for figures that nobody looks at
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

// prepare lays out a new file, checks an old one, and closes it to others.
func prepare(db *bolt.DB, path string, created bool) (err error) {
	defer guard(&err)()
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	if err := db.View(checkFormat); !errors.Is(err, errBlank) {
		return err
	}
	if err := db.Update(layOut); err != nil {
		return err
	}
	if !created {
		return nil
	}
	return syncDirectory(filepath.Dir(path))
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

// Close answers the writes that are under way, then closes the file.
// Afterwards everything fails with [ErrClosed].
func (s *Store) Close() error {
	s.writes.close()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("embedded: close: %w", err)
	}
	return nil
}

// view runs fn on a snapshot. What fn reads is valid until it returns.
func (s *Store) view(ctx context.Context, fn func(tx *bolt.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.writes.usable(); err != nil {
		return err
	}
	defer guard(&err)()
	err = s.db.View(fn)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// find hands the value at a place to read; nil if there is none. The journal is
// looked at first: a record that leaves it is where it stays already, so it is
// found by the second look at the latest.
func (s *Store) find(ctx context.Context, p place, read func(value []byte) error) error {
	if value, known := s.writes.recent.get(p); known {
		if err := errors.Join(ctx.Err(), s.writes.usable()); err != nil {
			return err
		}
		return read(value)
	}
	return s.view(ctx, func(tx *bolt.Tx) error { return read(get(tx, p.kind, p.digest[:])) })
}

// guard turns a panic over damaged pages, or a fault in the mapped file, into
// [ErrCorrupt]. Use: defer guard(&err)().
func guard(err *error) func() {
	faults := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(faults)
		if r := recover(); r != nil {
			*err = fmt.Errorf("%w: %v\n%s", ErrCorrupt, r, debug.Stack())
		}
	}
}
