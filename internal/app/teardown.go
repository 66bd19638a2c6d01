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

// push adds the undoing of what has just been started.
func (t *teardown) push(name string, stop func(context.Context) error) {
	t.steps = append(t.steps, step{name, stop})
}

// grace is what a step gets at least, however late it is: most steps close
// something and take no time at all.
const grace = 200 * time.Millisecond

// run stops everything, once. It goes on after a failure, and when ctx has
// ended it leaves a step behind that does not heed it, so that the whole is
// bounded. It returns the names of those, and the failures of the others.
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
