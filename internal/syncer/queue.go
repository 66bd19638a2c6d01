package syncer

import (
	"container/heap"
	"sync"
	"time"

	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
)

// dueQueue holds the counters that wait for an exchange, the first due first. When a counter is
// planned again its old entry stays, with a stale ticket that [counting.Sync.Begin] refuses. So
// the queue never searches for an entry.
type dueQueue struct {
	mu      sync.Mutex
	entries entryHeap
	paused  time.Duration // nothing is due before this
	batch   int           // most items of one call, at present
	fails   int           // calls that failed in a row
	wake    func()        // makes the loop look again
	calls   calls
}

// entry is a counter that becomes due.
type entry struct {
	due     time.Duration // since the syncer was made
	planned time.Duration // since the syncer was made: when it began to wait
	ticket  counting.Ticket
}

// newDueQueue returns an empty queue that wakes its loop by a call of wake, which must not block.
func newDueQueue(wake func()) *dueQueue { return &dueQueue{batch: exchange.MaxBatch, wake: wake} }

// add adds an entry, and wakes the loop if it is the first to become due.
func (q *dueQueue) add(it entry) {
	q.mu.Lock()
	heap.Push(&q.entries, it)
	first := q.entries[0] == it
	q.mu.Unlock()
	if first {
		q.wake()
	}
}

// earlyBy is how much earlier than due a counter may be exchanged together with others.
const earlyBy = 2 * time.Millisecond

// pop removes and returns the entries that are due, as many as one call may have.
func (q *dueQueue) pop(now time.Duration) (due []entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.paused > now {
		return nil
	}
	for len(due) < q.batch && len(q.entries) > 0 && q.entries[0].due <= now+earlyBy {
		due = append(due, heap.Pop(&q.entries).(entry))
	}
	return due
}

// nextDue returns when the first entry becomes due; false if the queue is empty.
func (q *dueQueue) nextDue() (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.entries) == 0 {
		return 0, false
	}
	return max(q.entries[0].due, q.paused), true
}

// clear removes all entries and ends a pause.
func (q *dueQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries, q.paused = nil, 0
}

// waiting returns the number of entries, including stale tickets, the number of due ones, and how
// long the first has been due.
func (q *dueQueue) waiting(now time.Duration) (n, due int, late time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.entries {
		if q.entries[i].due <= now {
			due++
			late = max(late, now-q.entries[i].due)
		}
	}
	return len(q.entries), due, late
}

// Bounds of a call. One that failed or took long may have been too large.
const (
	smallestBatch = 16
	slowCall      = 4 * time.Second       // the calls after a slower one are smaller
	firstBackoff  = 25 * time.Millisecond // doubled with every failure
)

// succeeded makes further calls larger after a quick one, and smaller after a slow one.
func (q *dueQueue) succeeded(took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fails = 0
	switch {
	case took > slowCall:
		q.batch = max(q.batch/2, smallestBatch)
	case took < slowCall/2:
		q.batch = min(2*q.batch, exchange.MaxBatch)
	}
}

// failed makes further calls smaller, and returns how long to wait before the next.
func (q *dueQueue) failed(longest time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fails++
	q.batch = max(q.batch/2, smallestBatch)
	return backoff(q.fails, longest)
}

// backoff returns how long to wait after so many failures in a row.
func backoff(fails int, longest time.Duration) time.Duration {
	return min(firstBackoff<<min(fails-1, 16), longest)
}

// pause keeps all entries from being due before that time.
func (q *dueQueue) pause(until time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = max(q.paused, until)
}

// entryHeap implements [heap.Interface], the first due first.
type entryHeap []entry

func (h entryHeap) Len() int           { return len(h) }
func (h entryHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h entryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *entryHeap) Push(x any) { *h = append(*h, x.(entry)) }

// Pop implements [heap.Interface].
func (h *entryHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	*h = old[:len(old)-1]
	return it
}
