package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// maxBatch bounds the writes of one transaction, and so how long the first of them waits.
const maxBatch = 1024

// write is one caller's change, waiting for the commit that makes it durable.
type write struct {
	change func(*writeTx) error
	done   chan error // of capacity 1, for the one answer
}

// committer is the single writer. While one transaction is committed, further writes queue up; the
// next transaction includes them all. There is no timer: a single write is committed at once, and the
// batch grows with the load.
//
// bbolt's own Batch waits up to 10 ms for further writes, and repeats failing changes one by one: of
// 100 claimers of one code, 99 fail.
type committer struct {
	db   *bolt.DB
	wake chan struct{} // holds a token when there may be something to do
	idle chan struct{} // closed when the loop has ended

	mu     sync.Mutex
	queue  []*write
	closed bool
	failed error // set once, when a commit ended in an unknown state

	stuck bool // bbolt panicked and holds the lock of writers for ever; of the loop
}

func newCommitter(db *bolt.DB) *committer {
	c := &committer{db: db, wake: make(chan struct{}, 1), idle: make(chan struct{})}
	go c.loop()
	return c
}

// do runs change in a transaction, possibly more than once, and returns nil once it is durable. After
// an error nothing of it has happened, unless that is [ErrFailed]. If ctx ends while the change is
// queued it is withdrawn; if its transaction has begun, do waits for the commit, so that the outcome
// is always returned.
func (c *committer) do(ctx context.Context, change func(*writeTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{change: change, done: make(chan error, 1)}
	if err := c.enqueue(w); err != nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		if c.withdraw(w) {
			return ctx.Err()
		}
		return <-w.done
	}
}

func (c *committer) enqueue(w *write) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refusal(); err != nil {
		return err
	}
	c.queue = append(c.queue, w)
	c.signal()
	return nil
}

// refusal returns why nothing is read or written any more. The caller holds mu.
func (c *committer) refusal() error {
	if c.closed && c.failed == nil {
		return ErrClosed
	}
	return c.failed
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

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // the loop has not received the last one yet
	}
}

// close refuses further writes, and returns when those in the queue are answered.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	<-c.idle
}

// failure returns why the store has stopped; nil if it has not.
func (c *committer) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// usable returns why nothing may be read; nil if reading is allowed.
func (c *committer) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusal()
}

func (c *committer) loop() {
	defer close(c.idle)
	for range c.wake {
		for batch := c.take(); len(batch) > 0; batch = c.take() {
			c.commit(batch)
		}
		if c.finished() {
			return
		}
	}
}

func (c *committer) finished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed && len(c.queue) == 0
}

func (c *committer) take() []*write {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.queue), maxBatch)
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	if len(c.queue) == 0 {
		c.queue = nil
	}
	return batch
}

// commit makes the batch durable and answers every write of it. If a change fails after it has written
// something, the transaction starts over without it, so that no half of it remains.
func (c *committer) commit(batch []*write) {
	for len(batch) > 0 {
		answers, spoiler, err := c.attempt(batch)
		if spoiler >= 0 {
			batch[spoiler].done <- errors.Join(answers[spoiler], err)
			batch = slices.Delete(batch, spoiler, spoiler+1)
			continue
		}
		for i, w := range batch {
			if err != nil { // nothing was committed, so the changes' own answers do not hold
				answers[i] = err
			}
			w.done <- answers[i]
		}
		return
	}
}

// attempt runs the changes in one transaction and commits it. It returns each change's own answer, the
// index of one that must be left out (or -1), and the error of the whole transaction.
func (c *committer) attempt(batch []*write) (answers []error, spoiler int, err error) {
	answers = make([]error, len(batch))
	tx, err := c.begin()
	if err != nil {
		return answers, -1, err
	}
	w := &writeTx{tx: tx}
	for i, op := range batch {
		w.touched = false
		answers[i] = run(op.change, w)
		if answers[i] != nil && w.touched {
			return answers, i, c.abandon(tx)
		}
	}
	if !w.dirty {
		return answers, -1, c.abandon(tx)
	}
	return answers, -1, c.finish(tx)
}

func (c *committer) begin() (tx *bolt.Tx, err error) {
	if err := c.failure(); err != nil {
		return nil, err
	}
	err = guarded(func() (err error) {
		tx, err = c.db.Begin(true)
		return err
	})
	if errors.Is(err, errPanicked) {
		c.stuck = true
		return nil, c.stop(fmt.Errorf("embedded: begin: %w", err))
	}
	return tx, err
}

// run calls change; a panic counts as a failure that may have written something.
func run(change func(*writeTx) error, w *writeTx) error {
	finished := false
	err := guarded(func() error {
		err := change(w)
		finished = true
		return err
	})
	w.touched = w.touched || !finished
	return err
}

// abandon rolls a transaction back. If even that fails, the file is damaged and is not written again.
func (c *committer) abandon(tx *bolt.Tx) error {
	if err := c.rollback(tx); err != nil {
		return c.stop(fmt.Errorf("embedded: roll back: %w", err))
	}
	return nil
}

// finish commits. If that fails and readers do not see the transaction, nothing has happened (a full
// disk, say) and the next one may succeed. If they see it although it may not be durable, no further
// answer is safe, and the store stops.
func (c *committer) finish(tx *bolt.Tx) error {
	id := tx.ID()
	err := guarded(tx.Commit)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("embedded: commit: %w", err)
	if errors.Is(err, ErrCorrupt) || c.visible(id) {
		return c.stop(errors.Join(err, c.rollback(tx)))
	}
	return err
}

// stop lets every further call fail.
func (c *committer) stop(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = fmt.Errorf("%w: %w", ErrFailed, cause)
	return c.failed
}

// rollback ends the transaction if it has not ended, so that its lock is free.
func (c *committer) rollback(tx *bolt.Tx) error {
	err := guarded(tx.Rollback)
	if errors.Is(err, berrors.ErrTxClosed) {
		return nil
	}
	c.stuck = c.stuck || err != nil
	return err
}

// visible reports whether readers see the transaction of that ID, or whether that is unknown.
func (c *committer) visible(id int) bool {
	seen := true
	err := guarded(func() error {
		return c.db.View(func(tx *bolt.Tx) error {
			seen = tx.ID() >= id
			return nil
		})
	})
	return seen || err != nil
}
