package syncer

import (
	"container/heap"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
)

// agenda holds the counters that wait for an exchange, the first due first. An
// item whose ticket is no longer good is void, so that nothing has to be searched
// for when a counter is planned anew.
type dueQueue struct {
	mu     sync.Mutex
	items  entryHeap
	paused time.Duration // nothing is due before
	batch  int           // how much one call may have now
	fails  int           // calls that failed in a row
	wake   chan struct{}
}

// item is a counter that becomes due.
type entry struct {
	due      time.Duration // since the syncer began
	ticket   ratelimit.Ticket
	readOnly bool
}

func newDueQueue() *dueQueue { return &dueQueue{batch: MaxBatch, wake: make(chan struct{}, 1)} }

// add puts an item in, and wakes the loop if it is the first to become due.
func (a *dueQueue) add(it entry) {
	a.mu.Lock()
	heap.Push(&a.items, it)
	first := a.items[0] == it
	a.mu.Unlock()
	if first {
		a.wakeLoop()
	}
}

// poke makes the loop look again.
func (a *dueQueue) wakeLoop() {
	select {
	case a.wake <- struct{}{}:
	default: // it is awake
	}
}

// together is how much earlier than due a counter goes along with others.
const earlyBy = 2 * time.Millisecond

// take removes the items that are due, as many as one call may have.
func (a *dueQueue) pop(now time.Duration) (due []entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.paused > now {
		return nil
	}
	for len(due) < a.batch && len(a.items) > 0 && a.items[0].due <= now+earlyBy {
		due = append(due, heap.Pop(&a.items).(entry))
	}
	return due
}

// next is when the first item becomes due; false if there is none.
func (a *dueQueue) nextDue() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.items) == 0 {
		return 0, false
	}
	return max(a.items[0].due, a.paused), true
}

// clear removes all items and lets nothing wait.
func (a *dueQueue) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.items, a.paused = nil, 0
}

// waiting is how many items there are, void ones included, how many of them
// are due, and for how long the first has been.
func (a *dueQueue) waiting(now time.Duration) (n, due int, late time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.items {
		if a.items[i].due <= now {
			due++
			late = max(late, now-a.items[i].due)
		}
	}
	return len(a.items), due, late
}

// Bounds of a call. What failed, or took long, may have been too much at once.
const (
	smallestBatch = 16
	slowCall      = 4 * time.Second
	firstBackoff  = 25 * time.Millisecond // doubled with every failure
)

// succeeded makes calls larger again, or smaller if this one was slow.
func (a *dueQueue) succeeded(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails = 0
	switch {
	case took > slowCall:
		a.batch = max(a.batch/2, smallestBatch)
	case took < slowCall/2:
		a.batch = min(2*a.batch, MaxBatch)
	}
}

// failed makes calls smaller, and returns how long to wait before the next.
func (a *dueQueue) failed(longest time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails++
	a.batch = max(a.batch/2, smallestBatch)
	return backoff(a.fails, longest)
}

// backoff is how long to wait after so many failures in a row.
func backoff(fails int, longest time.Duration) time.Duration {
	return min(firstBackoff<<min(fails-1, 16), longest)
}

// pause makes nothing due before that time.
func (a *dueQueue) pause(until time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = max(a.paused, until)
}

// itemHeap implements [heap.Interface], the first due first.
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
