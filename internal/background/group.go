package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// Back-off between the unexpected end of a loop and its restart.
const (
	FirstRestart = time.Second
	LastRestart  = time.Minute
)

// Group runs loops until it is cancelled. Create it with [NewGroup]. Its methods may be called from
// any goroutine, but Go and Repeat not after Wait.
type Group struct {
	log      *slog.Logger
	panicked func(loop string)
	running  sync.WaitGroup

	ctx    context.Context // of every loop; ends with Cancel
	cancel context.CancelFunc
}

// NewGroup returns a group without loops. The context of its loops ends with ctx or with
// [Group.Cancel]. The group logs each panic and calls panicked with the name of the loop. panicked
// may be nil and must be safe for concurrent use.
func NewGroup(ctx context.Context, log *slog.Logger, panicked func(loop string)) *Group {
	if panicked == nil {
		panicked = func(string) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Group{log: log, panicked: panicked, ctx: ctx, cancel: cancel}
}

// Go runs the loop in a goroutine until the group is cancelled. If a loop panics or returns before
// that, Go logs it and starts it again. The first restart comes after [FirstRestart]. Each further
// wait is twice as long, up to [LastRestart]. A random part of up to a quarter is added to each
// wait, so many instances that fail together do not restart together.
func (g *Group) Go(name string, loop func(context.Context) error) {
	g.running.Go(func() { g.supervise(g.ctx, name, loop) })
}

func (g *Group) supervise(ctx context.Context, name string, loop func(context.Context) error) {
	pause := FirstRestart
	for {
		began := time.Now()
		err := g.Guard(ctx, name, loop)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > LastRestart {
			pause = FirstRestart // it worked for a while
		}
		g.log.LogAttrs(ctx, slog.LevelError, "background loop ended; restarting",
			slog.String("loop", name), slog.Any("error", err), slog.String("after", pause.String()))
		if !Sleep(ctx, pause+rand.N(pause/4)) { //nolint:gosec // G404: spreads load; nothing to guess
			return
		}
		pause = min(2*pause, LastRestart)
	}
}

// Guard calls f once and returns its error. It logs a panic in f with its stack, reports it as a
// panic of the named loop, and returns it as an error.
func (g *Group) Guard(ctx context.Context, name string, f func(context.Context) error) error {
	err := g.call(ctx, name, f)
	g.logPanic(ctx, name, err)
	return err
}

// call is [Group.Guard] without the log.
func (g *Group) call(ctx context.Context, name string, f func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
			g.panicked(name)
		}
	}()
	return f(ctx)
}

// panicError is a panic as an error.
type panicError struct {
	value any
	stack []byte
}

// Error implements error.
func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func isPanic(err error) bool {
	_, ok := errors.AsType[*panicError](err)
	return ok
}

// logPanic logs err with its stack if it is a panic.
func (g *Group) logPanic(ctx context.Context, name string, err error) {
	if p, ok := errors.AsType[*panicError](err); ok {
		g.log.LogAttrs(ctx, slog.LevelError, "panic in a background loop",
			slog.String("loop", name), slog.Any("panic", p.value), slog.String("stack", string(p.stack)))
	}
}

// Cancel ends the context of every loop. It does not wait, and may be called more than once.
func (g *Group) Cancel() { g.cancel() }

// Wait returns when every loop has returned. It has no timeout: if a loop ignores its context, it
// blocks.
func (g *Group) Wait() { g.running.Wait() }

// Sleep waits for d or until ctx ends. It returns false if ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
