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
	done   chan error // of capacity 1, for the one answer
}

// committer lets concurrent writes share a transaction. One of the callers commits; what the others want to
// write meanwhile queues up, and the next of them commits all of that. There is no timer: a single write is
// committed at once, and the batch grows with the load.
//
// bbolt's own Batch waits up to 10 ms for further writes, and repeats failing changes one by one: of
// 100 claimers of one code, 99 fail.
type committer struct {
	db      *bbolt.DB
	writing chan struct{} // of capacity 1; holds the token of the caller that commits

	mu     sync.Mutex
	queue  []*write
	closed bool
	failed error // set once, when a commit ended in an unknown state

	stuck bool // bbolt panicked, and may hold its locks for ever; guarded by writing
}

func newCommitter(db *bbolt.DB) *committer {
	return &committer{db: db, writing: make(chan struct{}, 1)}
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
	case c.writing <- struct{}{}:
		if len(w.done) == 0 {
			c.commit(c.take())
		}
		<-c.writing
	}
	return <-w.done
}

func (c *committer) enqueue(w *write) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refusal(); err != nil {
		return err
	}
	c.queue = append(c.queue, w)
	return nil
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

func (c *committer) take() (batch []*write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch, c.queue = c.queue, nil
	return batch
}

// close refuses further writes, and returns when those in the queue are answered.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.writing <- struct{}{}
	c.commit(c.take())
	<-c.writing
}

// refusal returns why nothing is read or written any more. The caller holds mu.
func (c *committer) refusal() error {
	if c.closed && c.failed == nil {
		return ErrClosed
	}
	return c.failed
}

// usable returns why nothing may be read; nil if reading is allowed.
func (c *committer) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusal()
}

// failure returns why the store has stopped; nil if it has not.
func (c *committer) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// commit makes the batch durable and answers every write of it. If a change fails after it has written
// something, the transaction starts over without it, so that no half of it remains.
func (c *committer) commit(batch []*write) {
	for len(batch) > 0 {
		answers, spoiler, err := c.attempt(batch)
		if spoiler >= 0 && err == nil {
			batch[spoiler].done <- answers[spoiler]
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

// errRollback ends a transaction that is not committed.
var errRollback = errors.New("bolt: roll back")

// attempt runs the changes in one transaction and commits it. It returns each change's own answer, the
// index of one that must be left out (or -1), and the error of the whole transaction.
func (c *committer) attempt(batch []*write) (answers []error, spoiler int, err error) {
	answers, spoiler = make([]error, len(batch)), -1
	if err := c.failure(); err != nil {
		return answers, -1, err
	}
	id := 0
	err = guarded(func() error {
		return c.db.Update(func(tx *bbolt.Tx) error {
			id = tx.ID()
			w := &writeTx{tx: tx}
			for i, op := range batch {
				w.touched = false
				answers[i] = run(op.change, w)
				if answers[i] != nil && w.touched {
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
		return answers, spoiler, nil
	}
	return answers, -1, c.failedCommit(id, fmt.Errorf("bolt: commit: %w", err))
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

// failedCommit returns the error of a transaction. If readers do not see it, nothing has happened (a full
// disk, say) and the next one may succeed. If they see it although it may not be durable, or bbolt has
// panicked, no further answer is safe, and the store stops.
func (c *committer) failedCommit(id int, err error) error {
	c.stuck = errors.Is(err, errPanicked)
	if !c.stuck && !c.visible(id) {
		return err
	}
	return c.stop(err)
}

// stop lets every further call fail.
func (c *committer) stop(cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = fmt.Errorf("%w: %w", ErrFailed, cause)
	return c.failed
}

// visible reports whether readers see the transaction of that ID, or whether that is unknown.
func (c *committer) visible(id int) bool {
	seen := true
	err := guarded(func() error {
		return c.db.View(func(tx *bbolt.Tx) error {
			seen = tx.ID() >= id
			return nil
		})
	})
	return seen || err != nil
}
