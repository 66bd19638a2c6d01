package storequeue_test

import (
	"context"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/overload"
	"oauth-server/internal/overload/storequeue"
)

// TestWorkThatMustGoOn checks that such work gets its turn although its caller has hung up.
// Otherwise a thief could prevent a revocation. Only the context counts in a queue, not the
// connection, which such work shares with its request.
func TestWorkThatMustGoOn(t *testing.T) {
	client, server := check.Connected(t)
	ctx := context.WithoutCancel(overload.WithConn(ranked(t, 1), server))
	check.OK(t, client.Close())
	check.Eventually(t, "the caller has gone", func() bool { return overload.CallerGone(ctx) })

	l := storequeue.New(storequeue.Options{Max: 1})
	held, err := l.Enter(ranked(t, 0))
	check.OK(t, err)
	done := make(chan error)
	go func() {
		pass, err := l.Enter(ctx)
		pass.Leave(true)
		done <- err
	}()
	check.Eventually(t, "it waits", func() bool { return l.Stats().Queued == 1 })
	held.Leave(true)
	check.OK(t, <-done)
}
