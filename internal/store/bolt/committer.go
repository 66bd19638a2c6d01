package bolt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// write is one caller's change, waiting for the commit that makes it durable.
type write struct {
	change func(*writeTx) error
	answer error      // result of the change in the latest attempt
	done   chan error // of capacity 1, for the one answer of the commit
}

// writeTx is a write transaction that several changes share. A change calls touch before it writes.
type writeTx struct {
	tx      *bbolt.Tx
	touched bool // by the running change
	dirty   bool // by any change
}

func (w *writeTx) touch() { w.touched, w.dirty = true, true }

// committer lets concurrent writes share a transaction. One of the callers commits. Writes that
// arrive during the commit queue up, and the next caller commits all of them. There is no timer: a
// single write is committed at once, and the batch grows with the load.
//
// bbolt's own Batch waits up to 10 ms for further writes, and repeats failing changes one by one:
// if 100 callers claim one code, 99 fail.
type committer struct {
	db      *bbolt.DB
	writing chan struct{} // of capacity 1; holds the token of the caller that commits

	mu      sync.Mutex
	queue   []*write
	refuses error // of every further call: nil, ErrClosed or ErrFailed
}

// do runs change in a transaction, possibly more than once, and returns nil once it is durable.
// After an error the change has had no effect, except after [ErrFailed]. If ctx ends while the
// change is queued, the change is withdrawn. If its transaction has begun, do waits for the commit,
// so the outcome is always returned.
func (c *committer) do(ctx context.Context, change func(*writeTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{change: change, done: make(chan error, 1)}
	c.mu.Lock()
	refused := c.refuses
	if refused == nil {
		c.queue = append(c.queue, w)
	}
	c.mu.Unlock()
	if refused != nil {
		return refused
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		if c.withdraw(w) {
			return ctx.Err()
		}
	case c.writing <- struct{}{}:
		if len(w.done) == 0 {
			c.commit()
		}
		<-c.writing
	}
	return <-w.done
}

// withdraw removes w from the queue and reports whether it was there.
func (c *committer) withdraw(w *write) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.queue, w)
	if i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	return i >= 0
}

// close refuses further writes, and returns once it has answered the queue.
func (c *committer) close() {
	_ = c.refuse(ErrClosed)
	c.writing <- struct{}{}
	c.commit()
	<-c.writing
}

// refuse makes every further call fail with err, unless an earlier ErrFailed stays. It returns the error of those calls.
func (c *committer) refuse(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !errors.Is(c.refuses, ErrFailed) {
		c.refuses = err
	}
	return c.refuses
}

// refusal returns the error of every further call; nil while the store works.
func (c *committer) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refuses
}

// commit makes the queued writes durable and answers each. If a change fails after it has written
// something, the transaction starts over without it, so that no part of it remains.
func (c *committer) commit() {
	c.mu.Lock()
	batch := c.queue
	c.queue = nil
	c.mu.Unlock()
	for len(batch) > 0 {
		spoiler, err := c.attempt(batch)
		if spoiler >= 0 {
			batch[spoiler].done <- batch[spoiler].answer
			batch = slices.Delete(batch, spoiler, spoiler+1)
			continue
		}
		for _, w := range batch {
			if err != nil { // nothing was committed, so the results of the changes are void
				w.answer = err
			}
			w.done <- w.answer
		}
		return
	}
}

// errRollback ends a transaction that is not committed.
var errRollback = errors.New("bolt: roll back")

// attempt runs the changes in one transaction and commits it. If a change must be left out, attempt
// returns its index. Otherwise it returns -1 and the error of the whole transaction. If readers do
// not see a failed transaction, nothing has happened (a full disk, say) and the next one may
// succeed. The store stops if readers see the transaction although it may not be durable, or if
// bbolt has panicked: no further answer is then safe.
func (c *committer) attempt(batch []*write) (spoiler int, err error) {
	if err := c.refusal(); errors.Is(err, ErrFailed) {
		return -1, err
	}
	spoiler, id := -1, 0
	err = guarded(func() error {
		return c.db.Update(func(tx *bbolt.Tx) error {
			id = tx.ID()
			w := &writeTx{tx: tx}
			for i, op := range batch {
				w.touched = false
				op.answer = guarded(func() error { return op.change(w) })
				if op.answer != nil && (w.touched || errors.Is(op.answer, errPanicked)) {
					spoiler = i
					return errRollback
				}
			}
			if !w.dirty {
				return errRollback
			}
			return nil
		})
	})
	if err == nil || errors.Is(err, errRollback) {
		return spoiler, nil
	}
	err = fmt.Errorf("bolt: commit: %w", err)
	if errors.Is(err, errPanicked) || c.visible(id) {
		err = c.refuse(fmt.Errorf("%w: %w", ErrFailed, err))
	}
	return -1, err
}

// visible reports whether readers see the transaction with that ID. It also returns true if that is
// unknown.
func (c *committer) visible(id int) bool {
	seen := true
	_ = guarded(func() error {
		return c.db.View(func(tx *bbolt.Tx) error {
			seen = tx.ID() >= id
			return nil
		})
	})
	return seen
}
