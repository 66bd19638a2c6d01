package simtime

import (
	"container/heap"
	"time"
)

// timer is a function to call at a time.
type timer struct {
	loop   *Loop
	at     time.Duration // since the loop began
	number uint64        // orders timers of the same time
	f      func()
	index  int // in the heap, plus 1; 0: not in the heap
}

// Stop implements [background.Timer].
func (t *timer) Stop() bool { return t.loop.timers.remove(t) }

// timers is a heap of pending timers.
type timers struct{ heap timerHeap }

// first returns the timer that is due first; nil without timers.
func (t *timers) first() *timer {
	if len(t.heap) == 0 {
		return nil
	}
	return t.heap[0]
}

func (t *timers) add(it *timer) { heap.Push(&t.heap, it) }

// remove removes a timer and reports whether it was there.
func (t *timers) remove(it *timer) bool {
	if it.index == 0 {
		return false
	}
	heap.Remove(&t.heap, it.index-1)
	return true
}

// timerHeap implements [heap.Interface].
type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push implements [heap.Interface].
func (h *timerHeap) Push(x any) {
	it := x.(*timer)
	*h = append(*h, it)
	it.index = len(*h)
}

// Pop implements [heap.Interface].
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	it := (*h)[last]
	(*h)[last] = nil
	*h, it.index = (*h)[:last], 0
	return it
}
