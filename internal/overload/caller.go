package overload

import (
	"context"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"syscall"
)

type connKey struct{}

// caller is the connection of a request.
type caller struct {
	conn syscall.RawConn
	dice *atomic.Uint32 // decides about its next request; nil: nothing decides before [Shedder.Admit]
}

// WithConn returns a context for all requests of a connection, so a shedder can check whether the
// caller is still connected. Use it in [net/http.Server].ConnContext. If the connection has a method
// Dice, [Shedder.RefuseEarly] and [Shedder.Admit] decide by the same random number.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	of := &caller{}
	for {
		if d, has := c.(interface{ Dice() *atomic.Uint32 }); has {
			of.dice = d.Dice()
		}
		switch at := c.(type) {
		case syscall.Conn:
			var err error
			if of.conn, err = at.SyscallConn(); err == nil {
				return context.WithValue(ctx, connKey{}, of)
			}
			return ctx
		case interface{ NetConn() net.Conn }: // TLS and other wrappers
			c = at.NetConn()
		default:
			return ctx
		}
	}
}

func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(connKey{}).(*caller)
	return c
}

// diceOf returns the dice of the connection of a request, or nil.
func diceOf(ctx context.Context) *atomic.Uint32 {
	if c := callerOf(ctx); c != nil {
		return c.dice
	}
	return nil
}

// CallerGone reports whether the caller of a request has hung up, given the context of the request.
// That context also ends when the caller hangs up, but only after a goroutine has read the end of
// the connection. An overloaded server does not get to that before the answer. Without [WithConn],
// and on systems other than Linux, CallerGone checks only the context.
func CallerGone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	c := callerOf(ctx)
	return c != nil && hungUp(c.conn)
}

// cast returns the random number of 16 bits that decides about a request. The next request of the
// connection has another one.
func cast(ctx context.Context) uint32 {
	n := rand.Uint32() //nolint:gosec // G404: spreads load
	if dice := diceOf(ctx); dice != nil {
		n = dice.Swap(n)
	}
	return n % levelUnit
}
