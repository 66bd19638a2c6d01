package background

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Task is a step of work to repeat.
type Task struct {
	Name  string        // in logs and metrics
	Every time.Duration // longest wait between two runs; see [Jitter]
	Retry time.Duration // longest wait after a failure; 0: Every
	First bool          // run once before the first wait
	Do    func(context.Context) error

	Failed string                            // logged when Do begins to fail; empty: "background task failed"
	Jitter func(time.Duration) time.Duration // draws the waits; nil: [Jitter]
}

// Repeat runs the task until the group is cancelled. A panic in Do is a failure like an error. The
// first of successive errors is logged. The first panic is logged too, with its stack. Later ones are
// logged if they differ from the last logged one, but at most once per [relogAfter]. Equal ones are
// logged again after [remindAfter]. The success that ends the failures is logged too. Errors of a
// cancelled task are not logged, but panics are.
func (g *Group) Repeat(t Task) {
	if t.Failed == "" {
		t.Failed = "background task failed"
	}
	if t.Retry == 0 {
		t.Retry = t.Every
	}
	if t.Jitter == nil {
		t.Jitter = Jitter
	}
	g.Go(t.Name, func(ctx context.Context) error {
		g.repeat(ctx, &t)
		return nil
	})
}

func (g *Group) repeat(ctx context.Context, t *Task) {
	var failed, panicked failures
	wait := t.Every
	for now := t.First; now || Sleep(ctx, t.Jitter(wait)); now = false {
		err := g.call(ctx, t.Name, t.Do)
		row := &failed
		if isPanic(err) {
			row = &panicked
		}
		news := err != nil && row.add(time.Now(), err.Error())
		if news {
			g.logPanic(ctx, t.Name, err)
		}
		switch {
		case ctx.Err() != nil:
			return
		case news:
			g.log.LogAttrs(ctx, slog.LevelError, t.Failed, //nolint:sloglint // one constant per task
				slog.String("loop", t.Name), slog.Any("error", err))
		case err == nil && (failed != failures{} || panicked != failures{}):
			failed, panicked = failures{}, failures{}
			g.log.LogAttrs(ctx, slog.LevelInfo, "background task recovered", slog.String("loop", t.Name))
		}
		if wait = t.Every; err != nil {
			wait = t.Retry
		}
	}
}

// The minimum time between two log lines about successive failures. relogAfter is for different
// failures, because an error may contain a number that changes with every run. remindAfter is for
// equal ones.
const (
	relogAfter  = time.Minute
	remindAfter = time.Hour
)

// failures are the errors, or the panics, since the last successful run. The zero value means no
// failure.
type failures struct {
	logged string    // text that was logged last
	at     time.Time // when it was logged
}

// add reports whether to log a failure.
func (f *failures) add(now time.Time, text string) bool {
	least := relogAfter
	if text == f.logged {
		least = remindAfter
	}
	if !f.at.IsZero() && now.Sub(f.at) < least {
		return false
	}
	*f = failures{text, now}
	return true
}

// Streak decides which failures of a repeated operation to log, if it is not a [Task]. It follows
// the rules of [Group.Repeat]. It is safe for concurrent use.
type Streak struct {
	mu     sync.Mutex
	failed failures
}

// Add takes the outcome of one attempt and reports whether to log it: a failure, or the success
// that ends a series of failures.
func (s *Streak) Add(err error) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return s.failed.add(time.Now(), err.Error())
	}
	news = s.failed != failures{}
	s.failed = failures{}
	return news
}

// Jitter returns a random wait between nine tenths of d and d, so many instances do not work in
// step. It is never longer than d.
func Jitter(d time.Duration) time.Duration {
	return d - rand.N(d/10+1) //nolint:gosec // G404: spreads load; nothing to guess
}
