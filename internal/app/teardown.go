package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// teardown undoes a start in reverse order.
type teardown struct {
	steps []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// push adds a function that stops something that was just started. nil is ignored.
func (t *teardown) push(name string, stop func(context.Context) error) {
	if stop != nil {
		t.steps = append(t.steps, step{name, stop})
	}
}

// grace is the minimum time of a step, however late it is. Most steps only close something and take
// almost no time.
const grace = 200 * time.Millisecond

// run runs all steps once, and continues after a failure. After ctx has ended, it abandons each
// step that takes longer than [grace], so the total time is bounded. It returns the names of
// abandoned steps and the errors of the others.
func (t *teardown) run(ctx context.Context) (late []string, err error) {
	steps := t.steps
	t.steps = nil
	for _, s := range slices.Backward(steps) {
		switch failed := s.run(ctx); {
		case errors.Is(failed, errLate):
			late = append(late, s.name)
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("stop %s: %w", s.name, failed))
		}
	}
	return late, err
}

var errLate = errors.New("not done in time")

func (s step) run(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.stop(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return errLate
	}
}

// lastWrite returns a step of the stop that writes something within its share of the time. A failure
// is logged and does not fail the stop.
func (f *foundation) lastWrite(write func(context.Context) error, share float64, level slog.Level, failed string) func(context.Context) error {
	return func(ctx context.Context) error {
		within, cancel := withShare(ctx, share)
		defer cancel()
		if err := write(within); err != nil {
			f.log.LogAttrs(context.WithoutCancel(ctx), level, failed, slog.Any("error", err)) //nolint:sloglint // one of a few constants
		}
		return nil
	}
}

// withShare returns a context with this share of the time left to ctx, so later steps have the
// rest. Without a deadline it ends with ctx.
func withShare(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}
