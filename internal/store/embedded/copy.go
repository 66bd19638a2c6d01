package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// ErrCopyEnded is returned for a copy that was ended for the sake of the store; it is wrapped with why.
var ErrCopyEnded = errors.New("the copy was ended")

// A copy is taken from one read transaction. While that lasts, the pages that writes replace are not used
// again, so the file grows with each write; and a write for which the file has to be mapped anew waits for
// it, and with that write all that come later, reads too. So a copy has bounds:
const (
	// copyPatience is how long a write may wait before the copy makes way for it, and copyLook how often that
	// is looked at while the reader of the copy takes nothing: a second together.
	copyPatience = 900 * time.Millisecond
	copyLook     = 50 * time.Millisecond
	// copyGrace and copyRate bound its time, by the size of the file in bytes a second.
	copyGrace = 30 * time.Second
	copyRate  = 8 << 20
	// copyGrowth is by how much the file may grow meanwhile, in bytes, or by half of its size if that is more.
	copyGrowth = 256 << 20
)

// Copy writes the file as it is at this moment, while the store is used. begin gets the size before the
// first byte. w MUST bound the time of its own writes; a write to the store does not wait for them, but
// Copy does. Errors: [ErrCopyEnded], also after a part was written; those of begin and w.
func (s *Store) Copy(ctx context.Context, w io.Writer, begin func(size int64) error) error {
	return s.copyBounded(ctx, w, begin, copyPatience)
}

func (s *Store) copyBounded(ctx context.Context, w io.Writer, begin func(size int64) error, patience time.Duration) error {
	var c *bounded
	err := s.view(ctx, func(tx *bolt.Tx) error {
		size := tx.Size()
		info, err := os.Stat(s.db.Path())
		if err != nil {
			return err
		}
		within := copyGrace + time.Duration(size/copyRate)*time.Second
		c = &bounded{
			ctx: ctx, out: w, store: s, patience: patience, within: within, end: time.Now().Add(within),
			most: info.Size() + max(copyGrowth, size/2),
		}
		if err := begin(size); err != nil {
			return err
		}
		if _, err = tx.WriteTo(c); c.failed != nil {
			return c.failed // bbolt returns the text of some only
		}
		return err
	})
	if c != nil {
		c.writing.Wait() // the caller takes w back
	}
	return err
}

// bounded is the writer of a copy, within its bounds.
type bounded struct {
	ctx      context.Context //nolint:containedctx // of the one call of Copy
	out      io.Writer
	store    *Store
	patience time.Duration // with a write that waits
	within   time.Duration
	end      time.Time // begin and within
	most     int64     // size of the file, in bytes
	writes   int
	failed   error
	writing  sync.WaitGroup // to out
}

// growthLook is how many writes of 32 KiB there are between two looks at the size of the file.
const growthLook = 64

// Write implements [io.Writer]. It does not wait for out any longer than the bounds are kept.
func (b *bounded) Write(p []byte) (int, error) {
	if b.failed = b.over(); b.failed != nil {
		return 0, b.failed
	}
	done := make(chan error, 1)
	b.writing.Go(func() {
		_, err := b.out.Write(p)
		done <- err
	})
	look := time.NewTicker(copyLook)
	defer look.Stop()
	for {
		select {
		case b.failed = <-done:
			if b.failed != nil {
				return 0, b.failed
			}
			return len(p), nil
		case <-look.C:
			if b.failed = b.over(); b.failed != nil {
				return 0, b.failed
			}
		}
	}
}

// over returns why the copy has to end; nil if it may go on.
func (b *bounded) over() error {
	now := time.Now()
	since := b.store.writes.since.Load()
	switch {
	case b.ctx.Err() != nil:
		return b.ctx.Err()
	case since != 0 && now.Sub(time.Unix(0, since)) > b.patience:
		return fmt.Errorf("%w, because a write had to wait for over %s", ErrCopyEnded, b.patience)
	case now.After(b.end):
		return fmt.Errorf("%w, because it took over %s", ErrCopyEnded, b.within)
	}
	if b.writes++; b.writes%growthLook != 0 {
		return nil
	}
	info, err := os.Stat(b.store.db.Path())
	if err == nil && info.Size() > b.most {
		err = fmt.Errorf("%w, because the data file grew to %d bytes meanwhile", ErrCopyEnded, info.Size())
	}
	return err
}

// CopyFile writes a file that no process has open for writing. It changes nothing, also if the file has an
// earlier format. Errors are those of [Open].
func CopyFile(ctx context.Context, path string, w io.Writer) error {
	if _, err := sizeOf(path); err != nil {
		return fmt.Errorf("embedded: copy %s: %w", path, err)
	}
	err := readFile(path, Options{LockTimeout: DefaultLockTimeout}, func(tx *bolt.Tx, f *os.File) error {
		if err := checkPages(ctx, f, tx); err != nil { // before bbolt follows them
			return err
		}
		if _, err := checkFormat(tx); err != nil {
			return err
		}
		_, err := tx.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("embedded: copy %s: %w", path, err)
	}
	return nil
}
