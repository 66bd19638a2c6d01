package simtime

import (
	"context"
	"time"

	"oauth-server/internal/background"
)

// WithTimeout implements [background.Scheduler]. The context's Err reports the end at the deadline,
// but only cancel closes its channel: code on a loop does not wait for channels.
func (l *Loop) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	at := l.Now().Add(d)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(at) {
		at = earlier
	}
	ctx, cancel := context.WithCancel(ctx)
	return deadline{Context: ctx, loop: l, at: at}, cancel
}

// deadline is a context that ends at a simulated time.
type deadline struct {
	context.Context

	loop *Loop
	at   time.Time
}

// Deadline implements [context.Context].
func (c deadline) Deadline() (time.Time, bool) { return c.at, true }

// Err implements [context.Context].
func (c deadline) Err() error {
	if err := c.Context.Err(); err != nil || c.loop.Now().Before(c.at) {
		return err
	}
	return context.DeadlineExceeded
}

// NewTasks implements [background.Scheduler].
func (l *Loop) NewTasks() background.Tasks { return &tasks{loop: l} }

// tasks are goroutines of a loop.
type tasks struct {
	loop    *Loop
	running int
	waiting []*goroutine
}

// Go implements [background.Tasks].
func (t *tasks) Go(f func()) {
	t.running++
	t.loop.start(func() {
		defer t.ended()
		f()
	})
}

func (t *tasks) ended() {
	if t.running--; t.running == 0 {
		t.loop.ready = append(t.loop.ready, t.waiting...)
		t.waiting = nil
	}
}

// Wait implements [background.Tasks]. It first ends the waits under cancelled contexts, because the
// tasks may be blocked in them.
func (t *tasks) Wait() {
	if t.running == 0 {
		return
	}
	t.loop.wakeEnded()
	g := t.loop.present()
	t.waiting = append(t.waiting, g)
	g.park()
}

// NewSignal implements [background.Scheduler].
func (l *Loop) NewSignal() background.Signal { return &signal{loop: l} }

// signal is a signal of a loop.
type signal struct {
	loop *Loop
	set  bool
	wake func() // ends the current wait; nil: no wait
}

// Set implements [background.Signal].
func (s *signal) Set() {
	if s.wake != nil {
		s.wake()
	} else {
		s.set = true
	}
}

// Wait implements [background.Signal]. A cancelled context ends it once another goroutine waits for
// Tasks.
func (s *signal) Wait(ctx context.Context, d time.Duration) bool {
	g, l := s.loop.present(), s.loop
	if s.set || ctx.Err() != nil {
		s.set = false
		return ctx.Err() == nil
	}
	if at, ok := ctx.Deadline(); ok {
		d = min(d, at.Sub(l.Now()))
	}
	s.wake = func() {
		s.wake = nil
		l.ready = append(l.ready, g)
	}
	w := &wait{ctx: ctx, wake: s.end}
	l.watch(w)
	timer := l.AfterFunc(d, s.end)
	g.park()
	timer.Stop()
	l.unwatch(w)
	return ctx.Err() == nil
}

// end ends the current wait, if it has not ended.
func (s *signal) end() {
	if s.wake != nil {
		s.wake()
	}
}
