package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// teardown undoes a start: what was started last is stopped first.
type teardown struct {
	steps []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// push adds the undoing of what has just been started; nil if there is nothing to undo.
func (t *teardown) push(name string, stop func(context.Context) error) {
	if stop != nil {
		t.steps = append(t.steps, step{name, stop})
	}
}

// grace is the least time of a step, however late it is: most steps close something and take no
// time at all.
const grace = 200 * time.Millisecond

// run stops everything, once. It continues after a failure. Once ctx has ended, it abandons a step
// that takes longer than [grace], so that the whole is bounded. It returns the names of abandoned
// steps, and the failures of the others.
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

// withShare returns a context that ends after that share of the time that is left to ctx, so that
// the steps after this one have the rest. Without a deadline it ends with ctx.
func withShare(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(share*float64(time.Until(deadline))))
}
