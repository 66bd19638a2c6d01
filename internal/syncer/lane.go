package syncer

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
)

// item is a counter that becomes due. A ticket that is no longer good makes it
// void, so that nothing has to be searched for when a counter is scheduled anew.
type item struct {
	due     time.Duration // since the syncer began
	added   time.Duration // when it was scheduled
	counter *ratelimit.Counter
	ticket  ratelimit.Ticket
}

// lane holds the counters that wait for one kind of exchange, and who works
// through them: one goroutine.
type lane struct {
	mu     sync.Mutex
	items  itemHeap
	paused time.Duration // nothing is due before
	batch  int           // how much one call may have now
	fails  int           // calls that failed in a row
	wake   chan struct{}
}

func newLane() *lane { return &lane{batch: MaxBatch, wake: make(chan struct{}, 1)} }

// add puts an item in, and wakes the worker if it is the first to become due.
func (l *lane) add(it item) {
	l.mu.Lock()
	heap.Push(&l.items, it)
	first := l.items[0] == it
	l.mu.Unlock()
	if first {
		l.poke()
	}
}

func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default: // it is awake
	}
}

// pause makes nothing due before that time.
func (l *lane) pause(until time.Duration) {
	l.mu.Lock()
	l.paused = until
	l.mu.Unlock()
}

// smallestBatch is what calls shrink to while they fail.
const smallestBatch = 16

// size is how much one call may have now.
func (l *lane) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.batch
}

// slowCall is how long a call of the store should take at most.
const slowCall = 4 * time.Second

// succeeded makes calls larger again, or smaller if this one was slow.
func (l *lane) succeeded(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = 0
	switch {
	case took > slowCall:
		l.batch = max(l.batch/2, smallestBatch)
	case took < slowCall/2:
		l.batch = min(2*l.batch, MaxBatch)
	}
}

// failed makes calls smaller: what failed may have been too much at once. It
// returns how often that happened in a row.
func (l *lane) failed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails++
	l.batch = max(l.batch/2, smallestBatch)
	return l.fails
}

// take removes at most n items that are due.
func (l *lane) take(now time.Duration, n int, dst []item) []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(dst) < n && len(l.items) > 0 && l.items[0].due <= now {
		dst = append(dst, heap.Pop(&l.items).(item))
	}
	return dst
}

// drain removes all items.
func (l *lane) drain() []item {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.items
	l.items = nil
	return all
}

// next is when the first item becomes due; false if there is none.
func (l *lane) next() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) == 0 {
		return 0, false
	}
	return max(l.items[0].due, l.paused), true
}

// waiting is how many items there are, void ones included, how many of them
// are due, and for how long the first has been.
func (l *lane) waiting(now time.Duration) (n, due int, late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.items {
		if l.items[i].due <= now {
			due++
			late = max(late, now-l.items[i].due)
		}
	}
	return len(l.items), due, late
}

// wait returns when something is due; false when the context has ended.
func (l *lane) wait(ctx context.Context, elapsed func() time.Duration) bool {
	for ctx.Err() == nil {
		due, ok := l.next()
		if !ok {
			select {
			case <-l.wake:
			case <-ctx.Done():
			}
			continue
		}
		rest := due - elapsed()
		if rest <= 0 {
			return true
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// itemHeap implements [heap.Interface], the first due first.
type itemHeap []item

func (h itemHeap) Len() int           { return len(h) }
func (h itemHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h itemHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *itemHeap) Push(x any) { *h = append(*h, x.(item)) }

// Pop implements [heap.Interface].
func (h *itemHeap) Pop() any {
	old := *h
	it := old[len(old)-1]
	old[len(old)-1] = item{}
	*h = old[:len(old)-1]
	return it
}
