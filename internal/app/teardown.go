package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// teardown undoes a start: what was started last is stopped first.
type teardown struct {
	steps []step
}

type step struct {
	name string
	stop func(context.Context) error
}

// push adds the undoing of what has just been started.
func (t *teardown) push(name string, stop func(context.Context) error) {
	t.steps = append(t.steps, step{name, stop})
}

// run stops everything, once. It goes on after a failure, and when ctx ends it
// leaves a step that does not heed it behind, so that the whole is bounded.
func (t *teardown) run(ctx context.Context) error {
	steps := t.steps
	t.steps = nil
	var errs []error
	for _, s := range slices.Backward(steps) {
		done := make(chan error, 1)
		go func() { done <- s.stop(ctx) }()
		var err error
		select {
		case err = <-done:
		case <-ctx.Done():
			select { // it may have ended in the same moment
			case err = <-done:
			default:
				err = ctx.Err()
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}
