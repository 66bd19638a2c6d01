package background

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Task is work that is done again and again.
type Task struct {
	Name  string        // in logs and metrics
	Every time.Duration // the longest wait between two runs; see [Jitter]
	Retry time.Duration // the same after a failure; 0: Every
	First bool          // run once before the first wait
	Do    func(context.Context) error

	Failed string // logged when Do begins to fail; empty: "background task failed"
}

// Repeat does the task until the group is cancelled. A failure is
// logged when it begins, with its error, and again when it has ended; a failure
// because the group was cancelled is not. A panic counts as the end of a loop: see [Group.Go].
func (g *Group) Repeat(t Task) {
	if t.Failed == "" {
		t.Failed = "background task failed"
	}
	if t.Retry == 0 {
		t.Retry = t.Every
	}
	g.Go(t.Name, func(ctx context.Context) error { return t.run(ctx, g.log.With(slog.String("task", t.Name))) })
}

func (t *Task) run(ctx context.Context, log *slog.Logger) error {
	failing := false
	step := func() time.Duration {
		err := t.Do(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			log.LogAttrs(ctx, slog.LevelError, t.Failed, slog.Any("error", err)) //nolint:sloglint // one constant per task
		case err == nil && failing:
			log.LogAttrs(ctx, slog.LevelInfo, "background task works again")
		}
		if failing = err != nil; failing {
			return t.Retry
		}
		return t.Every
	}
	wait := t.Every
	if t.First {
		wait = step()
	}
	for Sleep(ctx, Jitter(wait)) {
		wait = step()
	}
	return nil
}

// Jitter returns a random wait of nine tenths of d up to d, so that many instances
// do not work in step.
func Jitter(d time.Duration) time.Duration {
	return d - rand.N(d/10+1) //nolint:gosec // G404: spreads load; nothing to guess
}

// Sleep waits for d and reports whether ctx has not ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
