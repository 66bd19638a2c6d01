package background

import (
	"context"
	"sync"
	"time"
)

// Scheduler is where code takes time and goroutines from, so that it also runs in a simulation. There
// one goroutine runs at a time, and time passes only while all of them wait. [RealTime] is that of
// the Go runtime.
//
// Code that is to run on any Scheduler waits in Tasks and Signals alone. It may lock a mutex, but
// must not wait with it locked. A context may end for what asks it without its channel being closed: a
// deadline of a simulation closes none, and so [context.AfterFunc] does nothing there.
type Scheduler interface {
	// Now returns the present time. Differences of it are elapsed time.
	Now() time.Time
	// AfterFunc is [time.AfterFunc]. f must not wait.
	AfterFunc(d time.Duration, f func()) Timer
	// WithTimeout is [context.WithTimeout].
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	NewTasks() Tasks
	NewSignal() Signal
}

// Timer is a call that is due later. A [time.Timer] is one.
type Timer interface {
	// Stop prevents the call, and reports whether it did.
	Stop() bool
}

// Tasks are goroutines. A [sync.WaitGroup] is one.
type Tasks interface {
	// Go starts f in a new goroutine.
	Go(f func())
	// Wait returns when every f has returned.
	Wait()
}

// Signal wakes one goroutine.
type Signal interface {
	// Set ends a Wait: the one under way, or else the next.
	Set()
	// Wait waits until the signal is set or d has passed. It reports false if ctx has ended, which
	// ends it too.
	Wait(ctx context.Context, d time.Duration) bool
}

// RealTime is the scheduler of the Go runtime.
var RealTime Scheduler = realTime{}

type realTime struct{}

// Now implements [Scheduler].
func (realTime) Now() time.Time { return time.Now() }

// AfterFunc implements [Scheduler].
func (realTime) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// WithTimeout implements [Scheduler].
func (realTime) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// NewTasks implements [Scheduler].
func (realTime) NewTasks() Tasks { return new(sync.WaitGroup) }

// NewSignal implements [Scheduler].
func (realTime) NewSignal() Signal { return make(signal, 1) }

// signal is a [Signal] of the Go runtime, of capacity 1. A nil one is never set.
type signal chan struct{}

// Set implements [Signal].
func (s signal) Set() {
	select {
	case s <- struct{}{}:
	default: // it is set
	}
}

// Wait implements [Signal].
func (s signal) Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Sleep waits for d and reports whether ctx has not ended before.
func Sleep(ctx context.Context, d time.Duration) bool { return signal(nil).Wait(ctx, d) }
