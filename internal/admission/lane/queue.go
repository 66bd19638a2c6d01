package lane

import (
	"container/list"
	"context"
	"iter"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"oauth-server/internal/admission"
)

// waiter is a call that waits for a pass.
type waiter struct {
	ctx     context.Context //nolint:containedctx // of the request: whether the caller has gone, when it is the turn of the call; who is refused
	request *request
	rank    admission.Rank
	started bool // the request has an earlier admitted call
	joined  time.Time
	turn    chan error // receives nil when the call may proceed, or the error that refuses it
	permit  adaptivelimiter.Permit
	ghost   bool // in dry-run mode: the call does not wait
	done    bool // the call of a ghost has ended
	in      *list.List
	element *list.Element // nil: not in the queue
}

// queue orders waiters. Requests with an earlier admitted call come first, in order of arrival. The
// others follow by rank, and within a rank the newest first, because under overload the caller of
// the newest is most likely still waiting.
type queue struct {
	started list.List
	ranks   [admission.Ranks]list.List
	n       int
}

func (q *queue) add(w *waiter) {
	if w.started {
		w.in = &q.started
		w.element = w.in.PushBack(w)
	} else {
		w.in = &q.ranks[w.rank]
		w.element = w.in.PushFront(w)
	}
	q.n++
}

// remove removes a waiter. It reports whether the waiter was in the queue.
func (q *queue) remove(w *waiter) bool {
	if w.element == nil {
		return false
	}
	w.in.Remove(w.element)
	w.element = nil
	q.n--
	return true
}

// first returns the next waiter, or nil.
func (q *queue) first() *waiter {
	if e := q.started.Front(); e != nil {
		return e.Value.(*waiter)
	}
	for i := len(q.ranks) - 1; i >= 0; i-- {
		if e := q.ranks[i].Front(); e != nil {
			return e.Value.(*waiter)
		}
	}
	return nil
}

// last returns the waiter to refuse if the queue is full, or nil if all have earlier admitted
// calls.
func (q *queue) last() *waiter {
	for i := range q.ranks {
		if e := q.ranks[i].Back(); e != nil {
			return e.Value.(*waiter)
		}
	}
	return nil
}

// all returns the waiters in no particular order. Each may be removed during the iteration.
func (q *queue) all() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		for i := -1; i < len(q.ranks); i++ {
			l := &q.started
			if i >= 0 {
				l = &q.ranks[i]
			}
			var next *list.Element
			for e := l.Front(); e != nil; e = next {
				next = e.Next()
				if !yield(e.Value.(*waiter)) {
					return
				}
			}
		}
	}
}
