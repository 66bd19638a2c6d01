package httpapi

import (
	"context"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/admission"
)

// call is one request on its way through the server: echo's context and what is found out about the
// request while it is answered.
type call struct {
	echo.Context
	remote    netip.Addr // forwarded addresses resolved; zero if unknown
	started   time.Time
	clientID  string             // as presented; for the log
	grantType string             // as asked for, of token requests
	outcome   string             // OAuth error code; for the log
	busy      bool               // answered by when to try again
	shed      admission.Resource // that an overloaded server had not enough of; empty: it did not refuse the request
}

// ctx returns the context of the request. It carries the request id; see accesslog.RequestID.
func (c *call) ctx() context.Context { return c.Request().Context() }

// handler answers a call. It returns an error instead of writing one.
type handler func(*call) error

// echo adapts the handler to echo's router; around has made the call.
func (h handler) echo(c echo.Context) error {
	return h(c.(*call)) //nolint:forcetypeassert // around passes nothing else
}

// write sends a body. A failure means that the client has gone, so it is dropped; the access log
// shows how many bytes were sent.
func (c *call) write(body []byte) {
	_, _ = c.Response().Write(body)
}
