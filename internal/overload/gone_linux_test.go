package overload

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
)

// TestHungUpBeforeItIsRead checks that once work waits longer than the target, no work is done for
// a request if its caller hangs up before it is read, although net/http reads and handles it.
func TestHungUpBeforeItIsRead(t *testing.T) {
	for name, tt := range map[string]struct {
		wait   time.Duration
		hangUp bool
		worked int64
	}{
		"hung up, overloaded":     {DefaultSettings().Target + 1, true, 0},
		"hung up, not overloaded": {0, true, 1},
		"still there":             {DefaultSettings().Target + 1, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(DefaultSettings(), nil)
			g.wait.Store(int64(tt.wait))
			var handled, worked atomic.Int64
			s := &http.Server{ReadHeaderTimeout: time.Minute, ConnContext: WithConn, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer handled.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				if _, err := g.Admit(r.Context(), &Request{ClientID: "shop", Class: Refresh}); err != nil {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				defer g.Leave()
				worked.Add(1)
			})}
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			check.OK(t, err)
			client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
			check.OK(t, err)
			_, err = io.WriteString(client, "POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\na=bc")
			check.OK(t, err)
			if tt.hangUp {
				check.OK(t, client.Close())
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(l) }() // as late as an overloaded server
			check.Eventually(t, "it is handled", func() bool { return handled.Load() == 1 })
			check.Equal(t, "worked on", worked.Load(), tt.worked)
			check.Equal(t, "abandoned", g.Stats().Requests[Refresh][Abandoned], uint64(1-tt.worked))
			check.Equal(t, "in flight", g.Stats().InFlight, 0)
			if !tt.hangUp {
				check.OK(t, client.Close())
			}
			check.OK(t, s.Close())
			check.ErrorIs(t, <-ended, http.ErrServerClosed)
		})
	}
}

// TestHungUpRefusedEarly checks that a caller that has hung up is counted as such, even if its
// request would be refused before it is read. Next to other programs, a server detects an overload
// by such callers.
func TestHungUpRefusedEarly(t *testing.T) {
	client, server := check.Connected(t)
	var seen []Outcome
	g := New(DefaultSettings(), func(_ context.Context, _ *Request, o Outcome) { seen = append(seen, o) })
	g.level.Store(uint32(levelOf(Ranks, 0)))
	ctx := WithConn(t.Context(), server)
	r := Request{ClientID: "shop", Class: ClientCredentials, Criticality: ratelimit.Sheddable}
	check.Equal(t, "refused", g.RefuseEarly(ctx, &r) != nil, true)
	check.OK(t, client.Close())
	check.Eventually(t, "the caller has gone", func() bool { return CallerGone(ctx) })
	check.Equal(t, "refused", g.RefuseEarly(ctx, &r) != nil, true)
	check.Equal(t, "outcomes", seen, []Outcome{Shed, Abandoned})
	check.Equal(t, "gone since the last beat", g.gone.Load(), uint64(1))
}
