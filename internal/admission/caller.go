package admission

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
)

type connKey struct{}

// WithConn returns a context for all requests of a connection, so that a gate can find out whether the caller is
// still there. It is for [net/http.Server].ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if raw, ok := c.(syscall.Conn); ok {
		if rc, err := raw.SyscallConn(); err == nil {
			return context.WithValue(ctx, connKey{}, rc)
		}
	}
	return ctx
}

// callerGone reports whether the caller has hung up. The context of a request ends then too, but only once a
// goroutine has read the end of the connection, for which an overloaded server has no time before the answer.
func callerGone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	rc, ok := ctx.Value(connKey{}).(syscall.RawConn)
	return ok && hungUp(rc)
}
