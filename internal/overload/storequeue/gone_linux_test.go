package storequeue_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

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

// TestHungUpInTheLane checks that a request leaves the queue without a call if its caller closes the
// connection while it waits, and that others take its turn.
func TestHungUpInTheLane(t *testing.T) {
	l := storequeue.New(storequeue.Options{Max: 1, MaxAge: time.Minute})
	held, err := l.Enter(ranked(t, 0))
	check.OK(t, err)
	var called atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		pass, err := l.Enter(storequeue.NewRequest(r.Context()))
		if err != nil {
			return
		}
		called.Add(1)
		pass.Leave(true)
	}))
	defer s.Close()
	waiting := func() net.Conn {
		before := l.Stats().Queued
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		check.OK(t, err)
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		check.OK(t, err)
		check.Eventually(t, "it waits", func() bool { return l.Stats().Queued == before+1 })
		return c
	}
	stays, goes := waiting(), waiting()
	check.OK(t, goes.Close())
	check.Eventually(t, "it has left", func() bool { return l.Stats().Queued == 1 })
	held.Leave(true)
	check.Eventually(t, "the other has been called", func() bool { return called.Load() == 1 && l.Stats().InFlight == 0 })
	st := l.Stats()
	check.Equal(t, "abandoned", st.Calls.Of(overload.Abandoned), uint64(1))
	check.Equal(t, "admitted", st.Calls.Of(overload.Admitted), uint64(2))
	check.OK(t, stays.Close())
}
