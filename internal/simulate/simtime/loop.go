package simtime

import (
	"cmp"
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/background"
)

// Loop is simulated time and the goroutines that wait in it. Its methods, and the methods of its
// Tasks and Signals, must be called by its own goroutines and functions, or by the caller of
// RunUntil between its calls.
type Loop struct {
	began   time.Time
	now     time.Duration // since began
	timers  timers
	created uint64       // timers and waits so far
	ready   []*goroutine // goroutines that can run
	next    []*goroutine // empty slice for the goroutines that become ready next
	waits   []*wait      // waits with contexts that may end
	running *goroutine
	all     []*goroutine // goroutines that have not ended
}

// goroutine is a goroutine of the loop, run as a coroutine.
type goroutine struct {
	resume func() (struct{}, bool) // runs it until it waits or ends
	yield  func(struct{}) bool
	stop   func() // makes yield return false
	index  int    // in Loop.all
}

// park waits until the goroutine is resumed, or ends it if the loop is closed.
func (g *goroutine) park() {
	if !g.yield(struct{}{}) {
		runtime.Goexit() // a panic would look like an error
	}
}

// wait is a goroutine that waits in a [background.Signal].
type wait struct {
	ctx    context.Context // checked when it may have been cancelled
	wake   func()
	number uint64 // grows from wait to wait
	index  int    // in Loop.waits
}

var _ background.Scheduler = (*Loop)(nil)

// New returns a loop without goroutines, at a time.
func New(begin time.Time) *Loop { return &Loop{began: begin.Round(0)} }

// Now implements [background.Scheduler]. It has no monotonic reading.
func (l *Loop) Now() time.Time { return l.began.Add(l.now) }

// RunUntil runs everything up to t and sets the time to t. If a goroutine panics, RunUntil panics
// with the same value.
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

// runReady runs the goroutines that can run, in the order of becoming ready.
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

// start starts a goroutine, which runs once the current one waits.
func (l *Loop) start(f func()) {
	g := &goroutine{index: len(l.all)}
	g.resume, g.stop = iter.Pull(func(yield func(struct{}) bool) {
		g.yield = yield
		defer l.forget(g)
		f()
	})
	l.ready, l.all = append(l.ready, g), append(l.all, g)
}

// forget removes a goroutine that has ended.
func (l *Loop) forget(g *goroutine) {
	last := l.all[len(l.all)-1]
	l.all[g.index], last.index = last, g.index
	l.all[len(l.all)-1] = nil
	l.all = l.all[:len(l.all)-1]
}

// Close ends all goroutines where they wait, as [runtime.Goexit] would. Only their deferred
// functions still run, and waits in them end too. The loop must not be used afterwards. A second
// Close does nothing.
func (l *Loop) Close() {
	for len(l.all) > 0 {
		g := l.all[len(l.all)-1]
		l.running = g
		var stopping sync.WaitGroup
		stopping.Go(g.stop) // on its own goroutine, which ends with it
		stopping.Wait()
		if n := len(l.all); n > 0 && l.all[n-1] == g {
			l.forget(g) // it had not begun
		}
	}
	l.running, l.ready, l.waits, l.timers = nil, nil, nil, timers{}
}

// present returns the running goroutine.
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

// wakeEnded ends the waits with ended contexts, the oldest wait first.
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

// watch adds a wait with a context that may end.
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
