package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestLoopIsRestartedAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var panicked []string
		g := NewGroup(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), func(loop string) { panicked = append(panicked, loop) })
		var runs atomic.Int64
		g.Go("counting", func(ctx context.Context) error {
			if runs.Add(1) == 1 {
				panic("out of fingers")
			}
			<-ctx.Done()
			return nil
		})
		time.Sleep(FirstRestart) //nolint:forbidigo // the clock of synctest
		synctest.Wait()
		if runs.Load() != 2 || len(panicked) != 1 || panicked[0] != "counting" {
			t.Errorf("runs %d, panics reported %v", runs.Load(), panicked)
		}
		g.Cancel()
		if err := g.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "out of fingers") || !strings.Contains(log.String(), "group_test.go") {
			t.Errorf("the log shows neither cause nor stack:\n%s", log.String())
		}
	})
}

func TestLoopThatKeepsFailingBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		g := NewGroup(ctx, quiet(), nil)
		var runs atomic.Int64
		g.Go("failing", func(context.Context) error { runs.Add(1); return errors.New("no") })
		if err := g.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		// At 0, 1, 3, 7, 15, 31 and 63 s, then every minute.
		if n := runs.Load(); n != 7+58 {
			t.Errorf("%d runs in an hour", n)
		}
	})
}

func TestLoopThatWorkedForLongIsRestartedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*(2*LastRestart+FirstRestart)-time.Second)
		defer cancel()
		g := NewGroup(ctx, quiet(), nil)
		var runs atomic.Int64
		g.Go("ending", func(ctx context.Context) error {
			runs.Add(1)
			Sleep(ctx, 2*LastRestart)
			return nil
		})
		if err := g.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := runs.Load(); n != 10 {
			t.Errorf("%d runs, want 10", n)
		}
	})
}

func TestGuardReturnsThePanic(t *testing.T) {
	var counted int
	g := NewGroup(t.Context(), quiet(), func(string) { counted++ })
	err := g.Guard(t.Context(), "once", func(context.Context) error { panic("twice") })
	var p *PanicError
	if !errors.As(err, &p) || p.Value != "twice" || counted != 1 {
		t.Errorf("Guard() = %v, counted %d", err, counted)
	}
	want := errors.New("an error")
	if err := g.Guard(t.Context(), "once", func(context.Context) error { return want }); !errors.Is(err, want) {
		t.Errorf("Guard() = %v, want %v", err, want)
	}
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), quiet(), nil)
		release := make(chan struct{})
		g.Go("deaf", func(context.Context) error { <-release; return nil })
		g.Cancel()
		g.Cancel()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait() = %v", err)
		}
		close(release)
		if err := g.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestRepeat(t *testing.T) {
	no := errors.New("no")
	tests := []struct {
		name     string
		task     Task
		fails    func(run int64) bool
		min, max int64 // runs in ten minutes
		logged   []string
	}{
		{"waits first", Task{Every: time.Minute}, func(int64) bool { return false }, 10, 11, nil},
		{"runs first", Task{Every: time.Hour, First: true}, func(int64) bool { return false }, 1, 1, nil},
		{
			"a failure does not end it and is logged once",
			Task{Every: time.Minute, Failed: "refresh failed"},
			func(int64) bool { return true }, 10, 11,
			[]string{"refresh failed"},
		},
		{
			"its end is logged",
			Task{Every: time.Minute},
			func(run int64) bool { return run < 4 }, 10, 11,
			[]string{"background task failed", "background task works again"},
		},
		{
			"tried again sooner",
			Task{Every: time.Hour, Retry: time.Minute, First: true},
			func(run int64) bool { return run < 3 }, 3, 3,
			[]string{"background task failed", "background task works again"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute+time.Second)
				defer cancel()
				g := NewGroup(ctx, slog.New(slog.NewTextHandler(&log, nil)), nil)
				var runs atomic.Int64
				tt.task.Name = "counting"
				tt.task.Do = func(context.Context) error {
					if tt.fails(runs.Add(1)) {
						return no
					}
					return nil
				}
				g.Repeat(tt.task)
				if err := g.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := runs.Load(); n < tt.min || n > tt.max {
					t.Errorf("%d runs, want %d to %d", n, tt.min, tt.max)
				}
				if got := strings.Count(log.String(), "\n"); got != len(tt.logged) {
					t.Errorf("%d lines logged, want %d:\n%s", got, len(tt.logged), log.String())
				}
				for _, want := range tt.logged {
					if !strings.Contains(log.String(), fmt.Sprintf("msg=%q", want)) {
						t.Errorf("the log lacks %q:\n%s", want, log.String())
					}
				}
			})
		})
	}
}

func TestJitter(t *testing.T) {
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := Jitter(time.Minute)
		low, high = min(low, d), max(high, d)
	}
	if low < 54*time.Second || high > time.Minute || high-low < 5*time.Second {
		t.Errorf("waits from %v to %v, want nearly all from 54 s to 1 min", low, high)
	}
}
