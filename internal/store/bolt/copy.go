package bolt

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.etcd.io/bbolt"
)

// A copy is read in one transaction. Until it ends, replaced pages are not reused, and the file
// grows with each write. So the time of a copy is bounded by a rate in bytes a second.
const (
	copyGrace = 30 * time.Second
	copyRate  = 8 << 20
)

// Copy writes a consistent copy of all data. begin gets its size in bytes before the first byte. The
// caller bounds how long w may block.
func (s *Store) Copy(ctx context.Context, w io.Writer, begin func(size int64) error) error {
	return s.view(ctx, func(tx *bbolt.Tx) error {
		within := copyGrace + time.Duration(tx.Size()/copyRate)*time.Second
		ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the copy took over %s", within))
		defer cancel()
		if err := begin(tx.Size()); err != nil {
			return err
		}
		return copyTo(ctx, tx, w)
	})
}

// CopyFile copies a file that no process has open for writing, and changes nothing. The copy has
// the same damage as the file. Errors are the errors of [Open].
func CopyFile(ctx context.Context, path string, w io.Writer) error {
	err := readFile(path, Options{}, func(tx *bbolt.Tx) error { return copyTo(ctx, tx, w) })
	if err != nil {
		return fmt.Errorf("bolt: copy %s: %w", path, err)
	}
	return nil
}

// copyTo writes the pages until the context ends.
func copyTo(ctx context.Context, tx *bbolt.Tx, w io.Writer) error {
	var failed error
	_, err := tx.WriteTo(writerFunc(func(p []byte) (n int, err error) {
		if err = context.Cause(ctx); err == nil {
			n, err = w.Write(p)
		}
		failed = err
		return n, err
	}))
	if failed != nil {
		return failed // for some errors bbolt returns only the text
	}
	return err
}

// writerFunc makes a function an [io.Writer].
type writerFunc func(p []byte) (int, error)

// Write implements [io.Writer].
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
