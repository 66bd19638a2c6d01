package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
)

// Server answers operators. It is an [http.Handler], safe for concurrent use.
type Server struct {
	o     Options
	guard *guard
	log   *slog.Logger
	echo  *echo.Echo
	begun time.Time
	look  lastLook

	unreported atomic.Bool // the last report could not be encoded
}

// New builds a server. The error joins all that is wrong with the options.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.setDefaults()
	s := &Server{o: o, log: o.Logger, echo: echo.New(), begun: o.Now()}
	var err error
	if s.guard, err = newGuard(&s.o); err != nil {
		return nil, err
	}
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(s.around)
	for _, r := range s.routes() {
		s.echo.Add(r.method, adminapi.Prefix+r.path, s.handler(r))
	}
	return s, nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// route is one operation of the API.
type route struct {
	method, path string // path in echo's notation, below adminapi.Prefix
	scope        string
	handle       func(*call) error
}

const (
	read  = clientcfg.ScopeLimitsRead
	write = clientcfg.ScopeLimitsWrite
)

func (s *Server) routes() []route {
	return []route{
		{http.MethodGet, "/settings", read, s.onSettings(s.get)},
		{http.MethodPut, "/settings", write, s.onSettings(s.put)},
		{http.MethodPatch, "/settings", write, s.onSettings(s.patch)},
		{http.MethodDelete, "/settings", write, s.onSettings(s.remove)},
		{http.MethodGet, "/policies", read, s.listPolicies},
		{http.MethodGet, "/policies/:client_id", read, s.onPolicy(s.get)},
		{http.MethodPut, "/policies/:client_id", write, s.onPolicy(s.put)},
		{http.MethodPatch, "/policies/:client_id", write, s.onPolicy(s.patch)},
		{http.MethodDelete, "/policies/:client_id", write, s.onPolicy(s.remove)},
		{http.MethodGet, "/candidates", read, s.listCandidates},
		{http.MethodGet, "/candidates/:client_id", read, s.onCandidate(s.get)},
		{http.MethodPut, "/candidates/:client_id", write, s.onCandidate(s.put)},
		{http.MethodPatch, "/candidates/:client_id", write, s.onCandidate(s.patch)},
		{http.MethodDelete, "/candidates/:client_id", write, s.onCandidate(s.remove)},
		{http.MethodPost, "/candidates/:client_id/promote", write, s.onCandidate(s.promote)},
		{http.MethodGet, "/clients", read, s.listClients},
		{http.MethodGet, "/clients/:client_id/counters", read, s.showCounters},
		{http.MethodDelete, "/clients/:client_id/counters", write, s.resetCounters},
		{http.MethodGet, "/top", read, s.top},
		{http.MethodGet, "/audit", read, s.audit},
		{http.MethodGet, "/instances", read, s.instances},
		{http.MethodGet, "/openapi.json", read, s.openAPI},
	}
}

// call is one request with what is known of it.
type call struct {
	echo.Context
	caller *caller
	query  url.Values
}

// callerKey is where around leaves the caller for the handler.
const callerKey = "caller"

// around is the only middleware: headers, who may, panics, and the log.
func (s *Server) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		began := time.Now()
		h := c.Response().Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		defer func() {
			if v := recover(); v != nil {
				err = &panicError{v, debug.Stack()}
			}
			if err != nil {
				s.fail(err, c)
				err = nil
			}
			s.logAccess(c, began)
		}()
		from, err := s.guard.admit(c.Request())
		if err != nil {
			return err
		}
		c.Set(callerKey, from)
		return next(c)
	}
}

// handler adapts a route: it checks the scope and the query.
func (s *Server) handler(r route) echo.HandlerFunc {
	return func(ec echo.Context) error {
		from, ok := ec.Get(callerKey).(*caller)
		if !ok {
			return errors.New("admin: a request without a caller")
		}
		if err := from.may(r.scope); err != nil {
			return err
		}
		query, err := url.ParseQuery(ec.Request().URL.RawQuery)
		if err != nil {
			return malformed("the query cannot be read: %v", err)
		}
		for name, values := range query {
			if len(values) > 1 {
				return invalidField(name, "stands in the query %d times", len(values))
			}
		}
		return r.handle(&call{ec, from, query})
	}
}

// panicError is a panic on its way to the log.
type panicError struct {
	value any
	stack []byte
}

// Error implements error.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// fail is the one place where a failure is answered.
func (s *Server) fail(err error, c echo.Context) {
	var routing *echo.HTTPError
	var crashed *panicError
	var p *problemError
	switch {
	case errors.As(err, &crashed):
		s.log.LogAttrs(c.Request().Context(), slog.LevelError, "panic in the admin API",
			slog.String("panic", crashed.Error()), slog.String("stack", string(crashed.stack)))
		p = problem(http.StatusInternalServerError, typeInternal, "Internal error", "something went wrong here; it is not your request")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		p = problem(routing.Code, typeMethod, "Method not allowed", "this resource does not take %s", c.Request().Method)
	case errors.As(err, &routing):
		p = notFound("there is nothing at this address; see %s/openapi.json", adminapi.Prefix)
	default:
		p = problemOf(err)
	}
	if p.Status >= http.StatusInternalServerError {
		s.log.LogAttrs(c.Request().Context(), slog.LevelError, "admin request failed",
			slog.String("route", c.Path()), slog.Any("error", err))
	}
	if !c.Response().Committed {
		p.write(c.Response())
	}
}

// logAccess writes a line for each request: the route, never the query or the
// body.
func (s *Server) logAccess(c echo.Context, began time.Time) {
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method), slog.String("route", c.Path()),
		slog.Int("status", c.Response().Status), slog.Duration("duration", time.Since(began)),
		slog.String("remote", peer(c.Request().RemoteAddr).String()),
	}
	if from, ok := c.Get(callerKey).(*caller); ok {
		attrs = append(attrs, slog.String("client_id", from.clientID))
	}
	s.log.LogAttrs(c.Request().Context(), slog.LevelInfo, "admin request", attrs...)
}

// answer sends v as JSON.
func (c *call) answer(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("admin: encode the answer: %w", err)
	}
	c.Response().Header().Set("Content-Type", "application/json")
	c.Response().WriteHeader(http.StatusOK)
	c.write(body)
	return nil
}

// write sends a body. Whoever does not take it has gone.
func (c *call) write(body []byte) { _, _ = c.Response().Write(body) }
