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

// CallerGone reports whether the caller of a request has hung up, by the context of the request. That ends then too,
// but only once a goroutine has read the end of the connection, for which an overloaded server has no time before the
// answer. Without [WithConn], and on other systems than Linux, that is all there is to go by.
func CallerGone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	rc, ok := ctx.Value(connKey{}).(syscall.RawConn)
	return ok && hungUp(rc)
}
