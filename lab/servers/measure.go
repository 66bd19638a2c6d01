package servers

import (
	"context"
	"errors"
	"time"
)

// Pause waits, until the context ends at most.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var errNever = errors.New("a change is not in force after a minute")

// Until asks again and again until the answer is yes.
func Until(ctx context.Context, every time.Duration, ask func() (bool, error)) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		if err := Pause(ctx, every); err != nil {
			return err
		}
	}
	return errNever
}

// Spent is the processor time of each server, in seconds, while do runs, and how long that took.
func Spent(do func() error, all ...*Server) (processor, elapsed float64, err error) {
	before, err := processorOf(all)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	elapsed = time.Since(began).Seconds()
	after, err := processorOf(all)
	return (after - before).Seconds() / float64(len(all)), elapsed, err
}

func processorOf(all []*Server) (sum time.Duration, err error) {
	for _, s := range all {
		used, failed := s.Processor()
		sum, err = sum+used, errors.Join(err, failed)
	}
	return sum, err
}
