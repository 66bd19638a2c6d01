package storequeue

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"oauth-server/internal/overload"
)

// waiter is a call that waits for a pass.
type waiter struct {
	ctx     context.Context //nolint:containedctx // of the request: whether the caller has gone when the call is next; who is refused
	request *request
	rank    overload.Rank
	started bool // the request has an earlier admitted call
	joined  time.Time
	order   int64      // by arrival
	ready   chan error // receives nil when the call may proceed, or the error that refuses it
	permit  adaptivelimiter.Permit
	ghost   bool // in dry-run mode: the call does not wait
	done    bool // the call of a ghost has ended
}

// waiters has the waiting calls in the order in which they proceed. Requests with an earlier admitted call
// come first, in order of arrival. The others follow by rank, and within a rank the newest first,
// because under overload the caller of the newest is most likely still waiting.
type waiters struct {
	waiting []*waiter
	arrived int64
}

func compare(a, b *waiter) int {
	switch {
	case a.started && b.started:
		return cmp.Compare(a.order, b.order)
	case a.started:
		return -1
	case b.started:
		return 1
	}
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.order, a.order))
}

func (q *waiters) add(w *waiter) {
	q.arrived++
	w.order = q.arrived
	i, _ := slices.BinarySearchFunc(q.waiting, w, compare)
	q.waiting = slices.Insert(q.waiting, i, w)
}

// remove removes a waiter. It reports whether the waiter was in the queue.
func (q *waiters) remove(w *waiter) bool {
	i, found := slices.BinarySearchFunc(q.waiting, w, compare)
	if found {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return found
}

// first returns the next waiter, or nil.
func (q *waiters) first() *waiter {
	if len(q.waiting) == 0 {
		return nil
	}
	return q.waiting[0]
}

// last returns the waiter to refuse if the queue is full, or nil if all have earlier admitted
// calls.
func (q *waiters) last() *waiter {
	if n := len(q.waiting); n > 0 && !q.waiting[n-1].started {
		return q.waiting[n-1]
	}
	return nil
}
