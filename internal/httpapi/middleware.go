package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/overload"
)

var (
	headerNosniff = []string{"nosniff"}
	headerHSTS    = []string{"max-age=31536000"}
)

// around is the only middleware, because each middleware costs time on every request. It creates
// the call, sets the common headers, answers errors and panics, and logs.
func (s *Server) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := s.begin(ec)
		defer s.end(c)
		if s.preflight(c) {
			return nil
		}
		if err := next(c); err != nil {
			s.fail(c, err)
		}
		return nil
	}
}

func (s *Server) begin(ec echo.Context) *call {
	r := ec.Request()
	c := &call{Context: ec, started: time.Now()}
	h := ec.Response().Header()
	var trusted bool
	c.remote, trusted = s.o.Addresses.Of(r)
	c.SetRequest(accesslog.Identify(r, h, trusted))
	h["X-Content-Type-Options"] = headerNosniff
	if s.https {
		h["Strict-Transport-Security"] = headerHSTS
	}
	return c
}

// end is deferred. It turns a panic into an answer and logs the request. If the answer has already
// begun, it closes the connection, so a client cannot mistake half an answer for a whole one.
func (s *Server) end(c *call) {
	v := recover()
	if v == nil {
		s.account(c)
		return
	}
	cut := c.Response().Committed
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		cut = true
	} else {
		s.log.LogAttrs(c.ctx(), slog.LevelError, "panic", slog.String("path", accesslog.Path(c.Path(), c.Request())),
			slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))
		s.fail(c, errPanicked)
	}
	s.account(c)
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// errPanicked represents a panic that has been logged with its stack.
var errPanicked = errors.New("httpapi: the handler panicked")

// account logs the request and passes its answer to [Options].Answered.
func (s *Server) account(c *call) {
	s.logAccess(c)
	if s.o.Answered == nil {
		return
	}
	s.o.Answered(c.ctx(), Answer{
		Route: s.routeOf(c), Method: c.Request().Method, Status: c.Response().Status,
		GrantType: c.grantType, Error: c.outcome, Shed: c.shed, Duration: time.Since(c.started),
	})
}

func (s *Server) logAccess(c *call) {
	line := accesslog.Line{
		Route: c.Path(), Status: c.Response().Status, Bytes: c.Response().Size, Started: c.started, Remote: c.remote,
		Grant: c.grantType, ClientID: c.clientID, Error: c.outcome, Busy: c.busy, Shed: string(c.shed), Probe: c.Path() == "/healthz" || c.Path() == "/readyz",
	}
	if line.Shed == "" {
		line.Write(s.log, c.Request())
	} else {
		s.shedLines.Write(&line, c.Request())
	}
}

// routeOf returns the registered path without the issuer's path. It returns an empty string if
// nothing is registered at the address.
func (s *Server) routeOf(c *call) string {
	route := strings.TrimPrefix(c.Path(), s.base)
	if route == "" && c.Path() != "" {
		return "/"
	}
	return route
}

// page calls the handler only if the request is admitted. Under overload, requests for pages
// are refused first.
func (s *Server) page(next handler) handler {
	return func(c *call) error {
		if err := s.enter(c); err != nil {
			return err
		}
		defer s.o.Service.EndRequest()
		return next(c)
	}
}

// enter asks the service to admit a request for a page. If it returns no error, the caller calls
// EndRequest after the work.
func (s *Server) enter(c *call) error {
	ctx, err := s.o.Service.BeginRequest(c.ctx(), &overload.Request{Class: overload.Page})
	if err == nil {
		c.SetRequest(c.Request().WithContext(ctx))
	}
	return err
}
