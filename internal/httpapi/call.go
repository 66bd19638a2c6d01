package httpapi

import (
	"context"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/overload"
)

// call is one request on its way through the server: echo's context, plus the values found while
// the request is handled.
type call struct {
	echo.Context
	remote    netip.Addr // forwarded addresses resolved; zero if unknown
	started   time.Time
	clientID  string            // as presented; for the log
	grantType string            // as requested, for token requests
	outcome   string            // OAuth error code; for the log
	busy      bool              // the answer says when to try again
	shed      overload.Resource // the resource that was short when the request was refused under overload; empty: not refused
}

// ctx returns the context of the request. It carries the request ID, see accesslog.RequestID.
func (c *call) ctx() context.Context { return c.Request().Context() }

// handler answers a call. It returns an error instead of writing one.
type handler func(*call) error

// echo adapts the handler to echo's router. around has created the call.
func (h handler) echo(c echo.Context) error {
	return h(c.(*call)) //nolint:forcetypeassert // around passes nothing else
}

// write sends a body. It ignores errors, because they mean that the client has disconnected. The
// access log shows how many bytes were sent.
func (c *call) write(body []byte) {
	_, _ = c.Response().Write(body)
}
