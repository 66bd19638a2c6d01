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

	"oauth-server/internal/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// repeated runs a task for some time and returns its log.
func repeated(t *testing.T, lasts time.Duration, panicked func(string), task Task) string {
	t.Helper()
	var log strings.Builder
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		g := NewGroup(ctx, slog.New(slog.NewTextHandler(&log, nil)), panicked)
		task.Name = "counting"
		g.Repeat(task)
		g.Wait()
	})
	return log.String()
}

func exact(d time.Duration) time.Duration { return d }

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
		time.Sleep(2 * FirstRestart) //nolint:forbidigo // the clock of synctest
		synctest.Wait()
		if runs.Load() != 2 || len(panicked) != 1 || panicked[0] != "counting" {
			t.Errorf("runs %d, panics reported %v", runs.Load(), panicked)
		}
		g.Cancel()
		g.Wait()
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
		var began []time.Time
		g.Go("failing", func(context.Context) error { began = append(began, time.Now()); return errors.New("no") })
		g.Wait()
		// 1+2+4+8+16+32 s, then at most once a minute and at least every 75 s.
		if n := len(began); n < 50 || n > 66 {
			t.Errorf("%d runs in an hour", n)
		}
		pause, jitter := FirstRestart, false
		for i := range began[1:] {
			wait := began[i+1].Sub(began[i])
			if wait < pause || wait >= pause+pause/4 {
				t.Errorf("wait %d is %v, want %v and up to a quarter more", i, wait, pause)
			}
			jitter = jitter || wait != pause
			pause = min(2*pause, LastRestart)
		}
		if !jitter {
			t.Error("no wait is random")
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
		g.Wait()
		check.Equal(t, "runs", runs.Load(), 10)
	})
}

func TestGuardReturnsThePanic(t *testing.T) {
	var counted int
	g := NewGroup(t.Context(), quiet(), func(string) { counted++ })
	err := g.Guard(t.Context(), "once", func(context.Context) error { panic("twice") })
	if err == nil || err.Error() != "panic: twice" || counted != 1 {
		t.Errorf("Guard() = %v, counted %d", err, counted)
	}
	want := errors.New("an error")
	check.ErrorIs(t, g.Guard(t.Context(), "once", func(context.Context) error { return want }), want)
}

func TestWaitReturnsAfterEveryLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), quiet(), nil)
		release := make(chan struct{})
		g.Go("slow to stop", func(context.Context) error { <-release; return nil })
		g.Go("quick to stop", func(ctx context.Context) error { <-ctx.Done(); return nil })
		g.Cancel()
		g.Cancel()
		var waited atomic.Bool
		go func() { g.Wait(); waited.Store(true) }()
		synctest.Wait()
		if waited.Load() {
			t.Error("Wait() returned before the last loop")
		}
		close(release)
		synctest.Wait()
		if !waited.Load() {
			t.Error("Wait() did not return after the last loop")
		}
	})
}

// TestRepeatSurvivesAPanic: a repeated task that panics keeps its period, because its loop did not
// end.
func TestRepeatSurvivesAPanic(t *testing.T) {
	panics, runs := 0, 0
	log := repeated(t, time.Hour, func(string) { panics++ }, Task{Every: time.Minute, Do: func(context.Context) error {
		if runs++; runs <= 3 {
			panic("out of fingers")
		}
		return nil
	}})
	if runs < 60 || runs > 67 || panics != 3 {
		t.Errorf("%d runs and %d panics, want one run a minute for an hour and 3 panics", runs, panics)
	}
	for text, want := range map[string]int{"out of fingers\" stack": 1, "background task failed": 1, "background task recovered": 1, "loop ended": 0} {
		check.Equal(t, text, strings.Count(log, text), want)
	}
}

func TestRepeatWaitsAsItsJitterSays(t *testing.T) {
	runs := 0
	repeated(t, time.Minute, nil, Task{
		Every: time.Hour, Jitter: func(d time.Duration) time.Duration { return d / 600 },
		Do: func(context.Context) error { runs++; return nil },
	})
	if runs < 9 || runs > 10 {
		t.Errorf("%d runs in a minute, want one each 6 s", runs)
	}
}

func TestFailureOfACancelledTaskIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := NewGroup(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), nil)
		g.Repeat(Task{Name: "waiting", Every: time.Hour, First: true, Do: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		synctest.Wait()
		g.Cancel()
		g.Wait()
		if log.Len() > 0 {
			t.Errorf("logged:\n%s", log.String())
		}
	})
}

func TestRepeat(t *testing.T) {
	no := errors.New("no")
	const failed, recovered = "background task failed", "background task recovered"
	tests := []struct {
		name     string
		task     Task
		fails    func(run int) bool
		min, max int // runs in ten minutes
		logged   []string
	}{
		{"waits first", Task{Every: time.Minute}, func(int) bool { return false }, 10, 11, nil},
		{"runs first", Task{Every: time.Hour, First: true}, func(int) bool { return false }, 1, 1, nil},
		{"a failure does not end it and is logged once", Task{Every: time.Minute, Failed: "no luck"}, func(int) bool { return true }, 10, 11, []string{"no luck"}},
		{"its end is logged", Task{Every: time.Minute}, func(run int) bool { return run < 4 }, 10, 11, []string{failed, recovered}},
		{"tried again sooner", Task{Every: time.Hour, Retry: time.Minute, First: true}, func(run int) bool { return run < 3 }, 3, 3, []string{failed, recovered}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runs := 0
			tt.task.Do = func(context.Context) error {
				if runs++; tt.fails(runs) {
					return no
				}
				return nil
			}
			log := repeated(t, 10*time.Minute+time.Second, nil, tt.task)
			if runs < tt.min || runs > tt.max {
				t.Errorf("%d runs, want %d to %d", runs, tt.min, tt.max)
			}
			check.Equal(t, "lines logged", strings.Count(log, "\n"), len(tt.logged))
			for _, want := range tt.logged {
				if !strings.Contains(log, fmt.Sprintf("msg=%q", want)) {
					t.Errorf("the log lacks %q:\n%s", want, log)
				}
			}
		})
	}
}

// TestRepeatLogsOtherFailures: a different error is logged, but at most once a minute. Equal errors
// are logged once.
func TestRepeatLogsOtherFailures(t *testing.T) {
	down, busy := errors.New("down"), errors.New("busy")
	for name, tt := range map[string]struct {
		do   func(run int) error // one run every 10 s, 60 in all
		want int                 // log lines about failures
	}{
		"one error":    {func(int) error { return down }, 1},
		"one panic":    {func(int) error { panic("boom") }, 1},
		"then another": {func(run int) error { return map[bool]error{true: busy, false: down}[run > 30] }, 2},
		"then a panic": {func(run int) error {
			if run > 30 {
				panic("boom")
			}
			return down
		}, 2},
		"one panic between": {func(run int) error {
			if run == 3 {
				panic("boom")
			}
			return down
		}, 2},
		"an error between panics": {func(run int) error {
			if run == 3 {
				return down
			}
			panic("boom")
		}, 2},
		"with a number":         {func(run int) error { return fmt.Errorf("%d are left", run) }, 10},
		"a panic with a number": {func(run int) error { panic(run) }, 10},
		"with success by turns": {func(run int) error { return map[bool]error{true: down, false: nil}[run%2 == 1] }, 30},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			log := repeated(t, 10*time.Minute+time.Second, nil, Task{Every: 10 * time.Second, Jitter: exact, Do: func(context.Context) error {
				runs++
				return tt.do(runs)
			}})
			if got := strings.Count(log, "background task failed"); runs != 60 || got != tt.want {
				t.Errorf("%d runs, failures logged %d times, want 60 and %d:\n%s", runs, got, tt.want, log)
			}
			failed, stacks := strings.Count(log, `error="panic: `), strings.Count(log, "stack=")
			check.Equal(t, "stacks of panics", failed, stacks)
		})
	}
}

// TestRepeatRemindsOfTheSameFailure: a task that fails for days is logged more than once.
func TestRepeatRemindsOfTheSameFailure(t *testing.T) {
	task := Task{Every: time.Minute, First: true, Jitter: exact, Do: func(context.Context) error { return errors.New("down") }}
	log := repeated(t, 24*time.Hour-time.Minute, nil, task)
	check.Equal(t, "times logged in a day", strings.Count(log, "error=down"), 24)
}

// TestPanicOfACancelledTaskIsLogged, even if the run before it has failed.
func TestPanicOfACancelledTaskIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g, runs := NewGroup(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), nil), 0
		g.Repeat(Task{Name: "waiting", Every: time.Second, First: true, Do: func(ctx context.Context) error {
			if runs++; runs == 1 {
				return errors.New("down")
			}
			<-ctx.Done()
			panic("boom")
		}})
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of synctest
		g.Cancel()
		g.Wait()
		check.Equal(t, "times the panic is logged", strings.Count(log.String(), "panic=boom stack="), 1)
	})
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

// TestStreak: the first of several equal failures is logged, then one an hour, and finally their
// end.
func TestStreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Streak
		for i, step := range []struct {
			wait time.Duration
			err  error
			news bool
		}{
			{0, nil, false},
			{0, errors.New("a"), true},
			{time.Minute, errors.New("a"), false},
			{0, errors.New("b"), true},
			{time.Hour, errors.New("b"), true},
			{0, nil, true},
			{0, nil, false},
		} {
			<-time.After(step.wait) // in the time of the bubble
			check.Equal(t, fmt.Sprint("step ", i, " is logged"), s.Add(step.err), step.news)
		}
	})
}
