package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/guard"
	"oauth-server/internal/admin/precondition"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict"
)

// call is one request: echo's context, and values determined while the request is served.
type call struct {
	echo.Context
	started time.Time
	caller  *guard.Caller // nil until the token is verified
	query   url.Values
	outcome string        // type of the problem in the response, for the log; empty without a problem
	age     time.Duration // of the data in the response, if they may be out of date

	change       context.Context // see lasting; nil until it is needed
	cancelChange context.CancelFunc
}

// handler serves a call. It returns errors instead of writing them.
type handler func(*call) error

// echo adapts the handler to echo's router. around has made the call.
func (h handler) echo(c echo.Context) error {
	return h(c.(*call)) //nolint:forcetypeassert // around passes nothing else
}

// answer sends v as JSON.
func (c *call) answer(v any) error { return c.answerStatus(http.StatusOK, v) }

func (c *call) answerStatus(status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("admin: encode the answer: %w", err)
	}
	c.write("application/json", status, body)
	return nil
}

// answerState sends a resource with its ETag. If the reader already has this state, body is not
// called.
func (c *call) answerState(status int, st precondition.State, body func() (any, error)) error {
	etag, err := st.ETag()
	if err != nil {
		return err
	}
	c.Response().Header().Set("ETag", etag)
	if c.Request().Method == http.MethodGet && precondition.Of(c.Request().Header).Unchanged(etag) {
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	v, err := body()
	if err != nil {
		return err
	}
	return c.answerStatus(status, v)
}

// done ends a change that has nothing to show.
func (c *call) done(err error) error {
	if err == nil {
		c.Response().WriteHeader(http.StatusNoContent)
	}
	return err
}

// applyWithin bounds the time of a change.
const applyWithin = 10 * time.Second

// lasting returns the context of a change. It continues if the caller disconnects, so the outcome is
// certain.
func (c *call) lasting() context.Context {
	if c.change == nil {
		c.change, c.cancelChange = context.WithTimeout(context.WithoutCancel(c.Request().Context()), applyWithin)
	}
	return c.change
}

// write sends a response. A write error means that the client has disconnected, which the access
// log shows.
func (c *call) write(media string, status int, body []byte) {
	c.Response().Header().Set("Content-Type", media)
	c.Response().WriteHeader(status)
	_, _ = c.Response().Write(body)
}

// maxBody bounds a request body, in bytes. The longest policy is far shorter.
const maxBody = 64 << 10

// flag reads a boolean parameter.
func (c *call) flag(name string) (bool, error) {
	switch v := c.query.Get(name); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, problem.InvalidField(name, "must be true or false, not %q", v)
	}
}

// number reads a parameter from 1 to high. otherwise is the default.
func (c *call) number(name string, high, otherwise int64) (int64, error) {
	return c.numberFrom(name, 1, high, otherwise)
}

// numberFrom is number with another lowest value.
func (c *call) numberFrom(name string, low, high, otherwise int64) (int64, error) {
	v := c.query.Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < low || n > high {
		return 0, problem.InvalidField(name, "must be a whole number from %d to %d, not %q", low, high, v)
	}
	return n, nil
}

// reason reads the reason for a change, for the audit trail.
func (c *call) reason() (string, error) {
	reason := c.query.Get("reason")
	if err := clientcfg.ValidateNote(reason); err != nil {
		return "", problem.InvalidField("reason", "%v", err)
	}
	return reason, nil
}

// clientID returns the client ID in the path. The router leaves it escaped if the path needs
// escaping, for example for a slash.
func (c *call) clientID() (string, error) { return c.name("client_id", clientcfg.MaxIDLength) }

func (c *call) username() (string, error) { return c.name("username", username.MaxLength) }

// name returns a path parameter of at most most bytes.
func (c *call) name(param string, most int) (string, error) {
	name, err := c.Param(param), error(nil)
	if c.Request().URL.RawPath != "" {
		name, err = url.PathUnescape(name)
	}
	if len(name) > most {
		return "", problem.NotFound("%s has more than %d characters", param, most)
	}
	if err != nil || name == "" {
		return "", problem.NotFound("not a valid %s", param)
	}
	return name, nil
}

// body reads one JSON value with one of the media types.
func (c *call) body(types ...string) (*strict.Value, error) { return c.bodyOf(maxBody, types...) }

// bodyOf is like body, with another size limit.
func (c *call) bodyOf(most int64, types ...string) (*strict.Value, error) {
	r := c.Request()
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, media) {
		p := problem.New(http.StatusUnsupportedMediaType, problem.TypeMedia, "Unsupported media type",
			"send Content-Type: %s", strings.Join(types, " or "))
		if r.Method == http.MethodPatch {
			c.Response().Header().Set("Accept-Patch", strings.Join(types, ", "))
		}
		return nil, p
	}
	b, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, most))
	if err != nil {
		return nil, problem.New(http.StatusRequestEntityTooLarge, problem.TypeTooLarge, "Body too large or truncated",
			"the body can have at most %d bytes", most)
	}
	v, err := strict.ParseJSON(b)
	if err != nil {
		p := problem.Malformed("the body is not valid JSON: %v", err)
		p.Errors = []adminapi.FieldProblem{{Detail: err.Error()}}
		return nil, p
	}
	return v, nil
}

// mergePatch reads a merge patch (RFC 7396); see patched.
func (c *call) mergePatch() (*strict.Value, error) {
	v, err := c.body("application/merge-patch+json", "application/json")
	if err == nil && !v.IsObject() {
		err = problem.Malformed("a merge patch must be an object (RFC 7396), not %s", v)
	}
	return v, err
}

// patched returns a document with a merge patch applied.
func patched(doc any, patch *strict.Value) (*strict.Value, error) {
	base, err := strict.Of(doc)
	if err != nil {
		return nil, fmt.Errorf("admin: encode: %w", err)
	}
	return strict.MergePatch(base, patch), nil
}

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
		if c.caller, err = s.guard.Admit(c.Request()); err == nil {
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
	if c.cancelChange != nil {
		c.cancelChange()
	}
	s.logAccess(c)
}

// errPanicked represents a panic that has been logged with its stack.
var errPanicked = errors.New("admin: the handler panicked")

// fail is the only place that writes error responses.
func (s *Server) fail(c *call, err error) {
	var routing *echo.HTTPError
	var p *problem.Error
	switch {
	case errors.Is(err, errPanicked):
		p = problem.New(http.StatusInternalServerError, problem.TypeInternal, "Internal error", "the server failed to handle this request; see its log")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		p = problem.New(routing.Code, problem.TypeMethod, "Method not allowed", "this resource does not support %s", c.Request().Method)
	case errors.As(err, &routing):
		p = problem.NotFound("no such resource; see %s/openapi.json", adminapi.Prefix)
	default:
		p = problem.Of(err)
		if p.Detail == problem.StoreAway && c.Request().Method != http.MethodGet {
			p.Detail = "the store is unavailable; the change may or may not have been made: check before you retry"
		}
		if p.Cause != nil && s.o.Operator != "" { // no one else can see it, and there is no log
			p.Detail = p.Cause.Error()
		}
	}
	c.outcome = strings.TrimPrefix(p.Type, problem.TypePrefix)
	if p.Status >= http.StatusInternalServerError {
		s.log.LogAttrs(c.Request().Context(), accesslog.LevelOfFailure(c.Request().Context(), false), "request failed",
			slog.String("path", c.Path()), slog.Any("error", err))
	}
	if !c.Response().Committed {
		p.Write(c.Response())
	}
}

func (s *Server) logAccess(c *call) {
	line := accesslog.Line{
		Route: c.Path(), Status: c.Response().Status, Bytes: c.Response().Size, Started: c.started,
		Remote: accesslog.Peer(c.Request()), Error: c.outcome,
	}
	if c.caller != nil {
		line.ClientID = c.caller.ClientID
	}
	line.Write(s.log, c.Request())
}
