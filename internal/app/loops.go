package app

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Back-off between the end of a loop that should not have ended and its restart.
const (
	firstRestart = time.Second
	lastRestart  = time.Minute
)

// loops runs background work until it is stopped. A loop that panics or ends
// by itself is reported, counted and started again.
type loops struct {
	log      *slog.Logger
	restarts atomic.Int64
	panicked func(loop string) // may be nil
	running  sync.WaitGroup
}

// start runs the loop until ctx ends.
func (l *loops) start(ctx context.Context, name string, run func(context.Context) error) {
	l.running.Go(func() { l.supervise(ctx, name, run) })
}

func (l *loops) supervise(ctx context.Context, name string, run func(context.Context) error) {
	pause := firstRestart
	for {
		began := time.Now()
		err := l.once(ctx, name, run)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastRestart {
			pause = firstRestart // it had been well for a while
		}
		l.restarts.Add(1)
		l.log.LogAttrs(ctx, slog.LevelError, "background loop ended, starting it again",
			slog.String("loop", name), slog.Any("error", err), slog.String("after", pause.String()))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause + rand.N(pause/4)): //nolint:gosec // G404: only spreads load
		}
		pause = min(2*pause, lastRestart)
	}
}

// once runs the loop, turning a panic into an error.
func (l *loops) once(ctx context.Context, name string, run func(context.Context) error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		err = fmt.Errorf("panic: %v", v)
		if l.panicked != nil {
			l.panicked(name)
		}
		l.log.LogAttrs(ctx, slog.LevelError, "panic in a background loop",
			slog.String("loop", name), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	}()
	return run(ctx)
}

// every calls do about once per period until ctx ends, jittered by a tenth so
// that many instances do not work in step. Its failures are logged.
func every(period time.Duration, log *slog.Logger, what string, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			timer := time.NewTimer(period - rand.N(period/10+1)) //nolint:gosec // G404: only spreads load
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C:
			}
			if err := do(ctx); err != nil && ctx.Err() == nil {
				log.LogAttrs(ctx, slog.LevelError, what+" failed", slog.Any("error", err)) //nolint:sloglint // what is one of few constants
			}
		}
	}
}
