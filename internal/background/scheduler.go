package background

import (
	"context"
	"sync"
	"time"
)

// Scheduler provides time and goroutines to code that also runs in a simulation. In a simulation
// one goroutine runs at a time, and time passes only while all of them wait. [RealTime] uses the Go
// runtime.
//
// Code for any Scheduler must wait only in Tasks and Signals. It may lock a mutex, but must not
// wait while it holds the lock. A context may end without its channel being closed: a deadline in a
// simulation closes no channel. Its Err reports the end, but [context.AfterFunc] does nothing.
type Scheduler interface {
	// Now returns the present time. The difference of two results is elapsed time.
	Now() time.Time
	// AfterFunc is [time.AfterFunc]. f must not wait.
	AfterFunc(d time.Duration, f func()) Timer
	// WithTimeout is [context.WithTimeout].
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
	NewTasks() Tasks
	NewSignal() Signal
}

// Timer is a call that is due later. [time.Timer] implements it.
type Timer interface {
	// Stop prevents the call, and reports whether it did.
	Stop() bool
}

// Tasks are goroutines. [sync.WaitGroup] implements it.
type Tasks interface {
	// Go starts f in a new goroutine.
	Go(f func())
	// Wait returns when every f has returned.
	Wait()
}

// Signal wakes one goroutine.
type Signal interface {
	// Set ends the current Wait, or else the next one.
	Set()
	// Wait waits until the signal is set, d has passed, or ctx has ended. It returns false if ctx
	// has ended.
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

// signal is a [Signal] of the Go runtime, of capacity 1. A nil signal is never set.
type signal chan struct{}

// Set implements [Signal].
func (s signal) Set() {
	select {
	case s <- struct{}{}:
	default: // already set
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

// Sleep waits for d or until ctx ends. It returns false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool { return signal(nil).Wait(ctx, d) }
