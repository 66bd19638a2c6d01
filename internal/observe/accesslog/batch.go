package accesslog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// batchEvery is the minimum time between two writes of a [Batch]. A line waits no longer.
	batchEvery = 5 * time.Millisecond
	// maxBatch bounds a write. A pipe takes 4 KiB in one piece (PIPE_BUF), so processes that share
	// it do not mix their lines.
	maxBatch = 4 << 10
)

// Batch writes log lines in batches, because a write per request costs a tenth of a token request. A
// line is written at once if the last write was 5 ms ago, and otherwise with all lines of these 5 ms,
// or when there are 4 KiB. A writer that blocks makes all callers wait. If it fails, Batch keeps up to
// 4 KiB to try again and counts the lines that it loses. It is safe for concurrent use.
type Batch struct {
	out io.Writer

	mu      sync.Mutex
	every   time.Duration
	lines   []byte
	written time.Time   // when lines were written last
	timer   *time.Timer // writes the lines
	timed   bool        // timer runs
	failed  error       // of the last write that failed
	failing bool        // it was the last write
	lost    int         // lines
}

// NewBatch returns a Batch that writes to out.
func NewBatch(out io.Writer) *Batch { return &Batch{out: out, every: batchEvery} }

// Write implements [io.Writer] for one line.
func (b *Batch) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) > 0 && len(b.lines)+len(line) > maxBatch {
		if err := b.write(); err != nil {
			b.lost++
			return 0, err
		}
	}
	b.lines = append(b.lines, line...)
	wait := b.every - time.Since(b.written)
	if wait <= 0 {
		return len(line), b.write()
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(wait, func() { _ = b.flush() }) // a later line or Unbuffer reports the error
	} else if !b.timed {
		b.timer.Reset(wait)
	}
	b.timed = true
	return len(line), nil
}

// write writes the lines. The caller holds the lock.
func (b *Batch) write() error {
	if b.timed {
		b.timer.Stop()
		b.timed = false
	}
	if len(b.lines) == 0 {
		return nil
	}
	n, err := b.out.Write(b.lines)
	b.lines = append(b.lines[:0], b.lines[n:]...)
	b.written = time.Now()
	if b.failing = err != nil; b.failing {
		b.failed = err
	}
	return err
}

func (b *Batch) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write()
}

// Unbuffer writes the lines that are left. Each later line is written at once. Its error says whether
// lines were lost or not written.
func (b *Batch) Unbuffer() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.every = 0
	err := b.write()
	if b.lost > 0 {
		return fmt.Errorf("%d lines of the log lost: %w", b.lost, b.failed)
	}
	return err
}

// takeLost returns the number of lost lines, once, and the error, after the first write that worked.
func (b *Batch) takeLost() (lost int, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing {
		return 0, nil
	}
	lost, b.lost = b.lost, 0
	return lost, b.failed
}

// Handler wraps a handler that writes to b. A warning or an error is written at once, with all lines
// before it. A line tells how many were lost, once there are others again.
func (b *Batch) Handler(h slog.Handler) slog.Handler { return batchHandler{h, b} }

type batchHandler struct {
	slog.Handler
	batch *Batch
}

// Handle implements [slog.Handler].
func (h batchHandler) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if lost, cause := h.batch.takeLost(); lost > 0 {
		note := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines could not be written", 0)
		note.AddAttrs(slog.Int("lost", lost), slog.Any("error", cause))
		err = errors.Join(err, h.Handler.Handle(ctx, note))
	}
	if r.Level >= slog.LevelWarn {
		err = errors.Join(err, h.batch.flush())
	}
	return err
}

// WithAttrs implements [slog.Handler].
func (h batchHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return batchHandler{h.Handler.WithAttrs(attrs), h.batch}
}

// WithGroup implements [slog.Handler].
func (h batchHandler) WithGroup(name string) slog.Handler {
	return batchHandler{h.Handler.WithGroup(name), h.batch}
}
