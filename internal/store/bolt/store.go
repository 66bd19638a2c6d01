package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"oauth-server/internal/store"
	"oauth-server/internal/store/exchange"
)

// Store is the backend in a local file. It is safe for concurrent use.
type Store struct {
	db     *bbolt.DB
	writes *committer

	sweeping sync.Mutex // held while a sweep reads in parts; guards the field below
	sweptTo  map[string]string
}

func newStore(db *bbolt.DB) *Store {
	writes := &committer{db: db, writing: make(chan struct{}, 1)}
	return &Store{db: db, writes: writes, sweptTo: map[string]string{}}
}

var _ interface {
	store.Backend
	exchange.Store
} = (*Store)(nil)

// Options tune a store. The zero value means the defaults.
type Options struct {
	// Existing keeps Open from creating a file. An empty file is then [ErrForeign], and a missing
	// one an error of the operating system.
	Existing bool
	// maxSize bounds the file, in bytes; writes beyond it fail and change nothing. 0 means no bound.
	maxSize int
	// checked loads the list of free pages when the file is opened for reading, for its check.
	checked bool
	// open opens the file; nil: open it by its name.
	open func(name string, flag int, mode fs.FileMode) (*os.File, error)
}

// Close completes the writes that are under way, then closes the file. Later calls fail with
// [ErrClosed]. If bbolt has panicked over a damaged file and holds its lock, the file stays open until
// the process ends.
func (s *Store) Close() error {
	s.writes.close()
	if err := s.writes.refusal(); errors.Is(err, errPanicked) {
		return fmt.Errorf("bolt: close: %w", err)
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("bolt: close: %w", err)
	}
	return nil
}

// view runs fn on a snapshot. Data read by fn is valid until fn returns.
func (s *Store) view(ctx context.Context, fn func(tx *bbolt.Tx) error) (err error) {
	if err := cmp.Or(ctx.Err(), s.writes.refusal()); err != nil {
		return err
	}
	defer guard(&err, true)()
	err = s.db.View(fn)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// errPanicked marks the errors of guard. The locks of bbolt may be held afterwards.
var errPanicked = errors.New("unreadable page")

// guard converts a panic over damaged pages, or a fault in the mapped file, to [ErrCorrupt]. Use:
// defer guard(&err, stack)(). In an open store the errors contain the stack, because the bug may be
// ours.
func guard(err *error, stack bool) func() {
	faults := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(faults)
		r := recover()
		if r != nil && stack {
			r = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
		if r != nil {
			*err = fmt.Errorf("%w: %w: %v", ErrCorrupt, errPanicked, r)
		}
	}
}

// guarded calls fn under guard.
func guarded(fn func() error) (err error) {
	defer guard(&err, true)()
	return fn()
}
