package clientcfg

import (
	"context"
	"fmt"
)

// turn is a lock for which a caller waits no longer than its context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. what names what is waited for.
func (t turn) take(ctx context.Context, what string) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("clientcfg: wait for another read of %s: %w", what, ctx.Err())
	}
}

func (t turn) release() { <-t }
