package embedded

import (
	"context"
	"fmt"
	"io"
	"time"

	bolt "go.etcd.io/bbolt"
)

// While a copy is read, in one transaction, the pages that writes replace are not used again, and the file
// grows with each write. So the time of a copy is bounded, by its size in bytes a second.
const (
	copyGrace = 30 * time.Second
	copyRate  = 8 << 20
)

// Copy implements [store.Copier]. The caller bounds the time in which w may take nothing.
func (s *Store) Copy(ctx context.Context, w io.Writer, begin func(size int64) error) error {
	return s.view(ctx, func(tx *bolt.Tx) error {
		within := copyGrace + time.Duration(tx.Size()/copyRate)*time.Second
		ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the copy took over %s", within))
		defer cancel()
		if err := begin(tx.Size()); err != nil {
			return err
		}
		out := &copyWriter{ctx: ctx, out: w}
		if _, err := tx.WriteTo(out); out.failed == nil {
			return err
		}
		return out.failed // bbolt returns the text of some only
	})
}

// copyWriter is the writer of a copy. It fails when the context has ended.
type copyWriter struct {
	ctx    context.Context //nolint:containedctx // of the one call of Copy
	out    io.Writer
	failed error
}

// Write implements [io.Writer].
func (c *copyWriter) Write(p []byte) (n int, err error) {
	if c.failed = context.Cause(c.ctx); c.failed == nil {
		n, c.failed = c.out.Write(p)
	}
	return n, c.failed
}

// CopyFile writes a file that no process has open for writing, and changes nothing. What it writes is only
// as whole as the file is. Errors are those of [Open].
func CopyFile(ctx context.Context, path string, w io.Writer) error {
	err := readFile(path, Options{Existing: true}, func(tx *bolt.Tx, _ int64) error {
		_, err := tx.WriteTo(&copyWriter{ctx: ctx, out: w})
		return err
	})
	if err != nil {
		return fmt.Errorf("embedded: copy %s: %w", path, err)
	}
	return nil
}
