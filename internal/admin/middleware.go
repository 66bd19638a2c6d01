package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/adminapi"
)

// around is the only middleware: it sets common headers, verifies the token, handles errors and
// panics, and logs.
func (s *Server) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := &call{Context: ec, started: time.Now()}
		defer s.end(c)
		h := c.Response().Header()
		c.SetRequest(accesslog.Identify(c.Request(), h, false))
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		var err error
		if c.caller, err = s.guard.admit(c.Request()); err == nil {
			err = next(c)
		}
		if err != nil {
			s.fail(c, err)
		}
		return nil
	}
}

// end is deferred. It converts a panic to a response and logs the request.
func (s *Server) end(c *call) {
	if v := recover(); v != nil {
		s.log.LogAttrs(c.Request().Context(), slog.LevelError, "panic in the admin API",
			slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))
		s.fail(c, errPanicked)
	}
	s.logAccess(c)
}

// errPanicked represents a panic that has been logged with its stack.
var errPanicked = errors.New("admin: the handler panicked")

// fail is the only place that writes error responses.
func (s *Server) fail(c *call, err error) {
	var routing *echo.HTTPError
	var p *problemError
	switch {
	case errors.Is(err, errPanicked):
		p = problem(http.StatusInternalServerError, typeInternal, "Internal error", "something went wrong here; it is not your request")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		p = problem(routing.Code, typeMethod, "Method not allowed", "this resource does not take %s", c.Request().Method)
	case errors.As(err, &routing):
		p = notFound("there is nothing at this address; see %s/openapi.json", adminapi.Prefix)
	default:
		p = problemOf(err)
		if p.Detail == storeAway && c.Request().Method != http.MethodGet {
			p.Detail = "the store could not be asked; nothing was changed as far as is known: look before you try again"
		}
		if p.cause != nil && s.o.Operator != "" { // no one else can see it, and there is no log
			p.Detail = p.cause.Error()
		}
	}
	c.outcome = strings.TrimPrefix(p.Type, typePrefix)
	if p.Status >= http.StatusInternalServerError {
		s.log.LogAttrs(c.Request().Context(), accesslog.LevelOfFailure(c.Request().Context(), false), "request failed",
			slog.String("path", c.Path()), slog.Any("error", err))
	}
	if !c.Response().Committed {
		p.write(c)
	}
}

func (s *Server) logAccess(c *call) {
	line := accesslog.Line{
		Route: c.Path(), Status: c.Response().Status, Bytes: c.Response().Size, Started: c.started,
		Remote: accesslog.Peer(c.Request()), Error: c.outcome,
	}
	if c.caller != nil {
		line.ClientID = c.caller.clientID
	}
	line.Write(s.log, c.Request())
}
