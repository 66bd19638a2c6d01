package overload

import (
	"context"
	"net"
	"syscall"
)

type connKey struct{}

// WithConn returns a context for all requests of a connection, so a shedder can check whether the
// caller is still connected. Use it in [net/http.Server].ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	for {
		switch at := c.(type) {
		case syscall.Conn:
			if rc, err := at.SyscallConn(); err == nil {
				return context.WithValue(ctx, connKey{}, rc)
			}
			return ctx
		case interface{ NetConn() net.Conn }: // TLS and other wrappers
			c = at.NetConn()
		default:
			return ctx
		}
	}
}

// CallerGone reports whether the caller of a request has hung up, given the context of the request.
// That context also ends when the caller hangs up, but only after a goroutine has read the end of
// the connection. An overloaded server does not get to that before the answer. Without [WithConn],
// and on systems other than Linux, CallerGone checks only the context.
func CallerGone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	rc, ok := ctx.Value(connKey{}).(syscall.RawConn)
	return ok && hungUp(rc)
}
