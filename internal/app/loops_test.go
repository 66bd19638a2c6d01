package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoopIsRestartedAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var panicked []string
		l := &loops{
			log:      slog.New(slog.NewTextHandler(&log, nil)),
			panicked: func(loop string) { panicked = append(panicked, loop) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		var runs atomic.Int64
		l.start(ctx, "counting", func(ctx context.Context) error {
			if runs.Add(1) == 1 {
				panic("out of fingers")
			}
			<-ctx.Done()
			return nil
		})
		time.Sleep(2 * firstRestart) //nolint:forbidigo // the clock of synctest
		synctest.Wait()
		if runs.Load() != 2 || l.restarts.Load() != 1 || len(panicked) != 1 || panicked[0] != "counting" {
			t.Errorf("runs %d, restarts %d, panics reported %v", runs.Load(), l.restarts.Load(), panicked)
		}
		cancel()
		l.running.Wait()
		if !strings.Contains(log.String(), "out of fingers") || !strings.Contains(log.String(), "loops_test.go") {
			t.Errorf("the log shows neither cause nor stack:\n%s", log.String())
		}
	})
}

func TestLoopThatKeepsFailingBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &loops{log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		l.start(ctx, "failing", func(context.Context) error { return errors.New("no") })
		l.running.Wait()
		// 1+2+4+8+16+32 s, then at most once a minute and at least every 75 s.
		if n := l.restarts.Load(); n < 50 || n > 66 {
			t.Errorf("%d restarts in an hour", n)
		}
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
		defer cancel()
		n := 0
		err := every(time.Minute, slog.New(slog.DiscardHandler), "counting", func(context.Context) error {
			n++
			return errors.New("a failure does not end it")
		})(ctx)
		if err != nil || n < 10 || n > 11 {
			t.Errorf("called %d times in ten minutes, %v", n, err)
		}
	})
}
