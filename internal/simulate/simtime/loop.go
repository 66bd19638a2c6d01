package simtime

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"oauth-server/internal/background"
)

// Loop is simulated time and the goroutines that wait in it. All its methods, and those of its Tasks and
// Signals, are called by its own goroutines and functions, or by the one that calls RunUntil, between the
// calls.
type Loop struct {
	began   time.Time
	now     time.Duration // since began
	timers  timers
	created uint64       // timers and waits so far
	ready   []*goroutine // that can run
	next    []*goroutine // empty, for those that can after them
	waits   []*wait      // under contexts that may end
	running *goroutine
}

// goroutine is one of the loop, a coroutine.
type goroutine struct {
	resume func() (struct{}, bool) // runs it until it parks or ends
	park   func(struct{}) bool
}

// wait is a goroutine that waits in a [background.Signal].
type wait struct {
	ctx    context.Context // looked at when it may have been cancelled
	wake   func()
	number uint64 // grows from wait to wait
	index  int    // in Loop.waits
}

var _ background.Scheduler = (*Loop)(nil)

// New returns a loop without goroutines, at a time.
func New(begin time.Time) *Loop { return &Loop{began: begin.Round(0)} }

// Now implements [background.Scheduler]. It has no monotonic reading.
func (l *Loop) Now() time.Time { return l.began.Add(l.now) }

// RunUntil runs everything until that time, which is then the present one. A panic of a goroutine is that
// of RunUntil.
func (l *Loop) RunUntil(t time.Time) {
	if l.running != nil {
		panic("simtime: RunUntil in a goroutine of the loop")
	}
	end := t.Sub(l.began)
	for {
		l.runReady()
		due := l.timers.first()
		if due == nil || due.at > end {
			l.now = max(l.now, end)
			return
		}
		l.timers.remove(due)
		l.now = max(l.now, due.at)
		due.f()
	}
}

// runReady runs the goroutines that can run, in the order in which they became able to.
func (l *Loop) runReady() {
	for len(l.ready) > 0 {
		ready := l.ready
		l.ready = l.next
		for _, l.running = range ready {
			l.running.resume()
		}
		clear(ready)
		l.running, l.next = nil, ready[:0]
	}
}

// start starts a goroutine, which runs when the present one waits.
func (l *Loop) start(f func()) {
	g := &goroutine{}
	g.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		g.park = yield
		f()
	})
	l.ready = append(l.ready, g)
}

// present returns the goroutine that is running.
func (l *Loop) present() *goroutine {
	if l.running == nil {
		panic("simtime: wait outside the goroutines of the loop")
	}
	return l.running
}

// AfterFunc implements [background.Scheduler].
func (l *Loop) AfterFunc(d time.Duration, f func()) background.Timer {
	l.created++
	t := &timer{loop: l, at: l.now + max(d, 0), number: l.created, f: f}
	l.timers.add(t)
	return t
}

// wakeEnded ends the waits whose contexts have ended, in the order in which they began.
func (l *Loop) wakeEnded() {
	var ended []*wait
	for _, w := range l.waits {
		if w.ctx.Err() != nil {
			ended = append(ended, w)
		}
	}
	slices.SortFunc(ended, func(a, b *wait) int { return cmp.Compare(a.number, b.number) })
	for _, w := range ended {
		w.wake()
	}
}

// watch adds a wait to those whose contexts may end.
func (l *Loop) watch(w *wait) {
	l.created++
	w.number, w.index = l.created, len(l.waits)
	l.waits = append(l.waits, w)
}

// unwatch removes a wait.
func (l *Loop) unwatch(w *wait) {
	last := l.waits[len(l.waits)-1]
	l.waits[w.index], last.index = last, w.index
	l.waits[len(l.waits)-1] = nil
	l.waits = l.waits[:len(l.waits)-1]
}
