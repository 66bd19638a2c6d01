package lane_test

import (
	"context"
	"net"
	"testing"

	"oauth-server/internal/admission"
	"oauth-server/internal/admission/lane"
	"oauth-server/internal/check"
)

// TestWorkThatMustGoOn has its turn although its caller has hung up: a thief must not prevent a revocation by that.
// Only the context counts in a lane, and not the connection, which such work has in common with its request.
func TestWorkThatMustGoOn(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check.OK(t, err)
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	check.OK(t, err)
	server, err := listener.Accept()
	check.OK(t, err)
	ctx := context.WithoutCancel(admission.WithConn(ranked(t, 1), server))
	check.OK(t, client.Close())
	check.Eventually(t, "the caller has gone", func() bool { return admission.CallerGone(ctx) })

	l := lane.New(lane.Options{Max: 1})
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
	check.OK(t, server.Close())
	check.OK(t, listener.Close())
}
