package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
)

// headerChallenge is shared to avoid allocations. It is read-only.
var headerChallenge = []string{`Basic realm="oauth-server", charset="UTF-8"`}

// answerTo turns any error into its answer. Only a [grants.Error] and a [oautherr.LimitedError]
// contain text for the client. The cause of any other error is only logged. A refusal under
// overload gets the same answer wherever it happened.
func (s *Server) answerTo(err error) oautherr.Answer {
	if busy := grants.Overloaded(err); busy != nil {
		return overloaded(busy)
	}
	var known *grants.Error
	var limited *oautherr.LimitedError
	switch {
	case errors.As(err, &limited):
		return oautherr.AnswerTo(limited, s.o.LimitedCode(), s.url+rateLimitsPath)
	case errors.As(err, &known):
		a := oautherr.NewAnswer(statusOf(known.Code), known.Code, known.Description)
		a.Retry = known.RetryAfter
		return a
	}
	return answerToOurs(err)
}

// OverloadedBody returns the JSON body of the answer to a request that was refused under overload.
func OverloadedBody(shed *overload.ShedError) []byte {
	a := overloaded(grants.Overloaded(shed))
	return a.Encoded()
}

// overloaded returns the answer to a request that was refused under overload.
func overloaded(busy *grants.Error) oautherr.Answer {
	a := oautherr.NewAnswer(statusOf(busy.Code), busy.Code, busy.Description)
	a.Body.Type, a.Retry = oautherr.ReducedCapacity, busy.RetryAfter
	return a
}

// statusOf returns the HTTP status for an error code (RFC 6749 5.2): 400, except for failed client
// authentication and server errors.
func statusOf(code oautherr.Code) int {
	switch code {
	case oautherr.InvalidClient:
		return http.StatusUnauthorized
	case oautherr.ServerError:
		return http.StatusInternalServerError
	case oautherr.TemporarilyUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
}

// answerToOurs returns the answer to errors of this package and of the router, and to unexpected
// errors.
func answerToOurs(err error) oautherr.Answer {
	var routing *echo.HTTPError
	status, code, description := http.StatusInternalServerError, oautherr.ServerError, "The server failed to handle this request."
	switch {
	case errors.Is(err, errCrossOrigin):
		status, code, description = http.StatusForbidden, oautherr.InvalidRequest, "This form was sent from another site."
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		status, code, description = routing.Code, oautherr.InvalidRequest, "This endpoint does not support this method."
	case errors.As(err, &routing) && routing.Code < http.StatusInternalServerError:
		status, code, description = routing.Code, oautherr.InvalidRequest, "This page does not exist."
	}
	return oautherr.NewAnswer(status, code, description)
}

// fail answers every failed request: as JSON for clients, as a page for people.
func (s *Server) fail(c *call, err error) {
	a := s.answerTo(err)
	c.outcome, c.busy, c.shed = string(a.Body.Code), a.Retry > 0, shedBy(err)
	if a.Limited != nil && !accesslog.Denied(c.ctx()) { // denied by a limit outside the policies
		accesslog.NoteDenial(c.ctx(), accesslog.Denial{Outcome: ratelimit.Denied.String(), Limit: a.Limited.Limit})
	}
	if a.Status >= http.StatusInternalServerError && c.shed == "" { // requests refused under overload are too many to log here; the access log has them
		s.log.LogAttrs(c.ctx(), accesslog.LevelOfFailure(c.ctx(), c.busy), "request failed", slog.String("path", c.Path()), slog.Any("error", err))
	}
	if c.Response().Committed {
		return
	}
	if s.wantsPage(c) {
		s.failPage(c, a)
		return
	}
	s.failJSON(c, a)
}

// shedBy returns the resource that was short if err refused a request under overload, otherwise an
// empty string.
func shedBy(err error) overload.Resource {
	var shed *overload.ShedError
	if errors.As(err, &shed) {
		return shed.Short
	}
	return ""
}

// failJSON writes an OAuth error. Only a 401 has a WWW-Authenticate field with the scheme (RFC 6749
// 5.2). With other statuses, some clients would hide the error.
func (s *Server) failJSON(c *call, a oautherr.Answer) {
	if a.Status == http.StatusUnauthorized {
		c.Response().Header()["Www-Authenticate"] = headerChallenge
	}
	a.SetRetry(c.Response().Header())
	writeJSON(c, a.Status, a.Encoded())
}

// writeJSON writes an answer that must not be cached (RFC 6749 5.1).
func writeJSON(c *call, status int, body []byte) {
	oautherr.BeginJSON(c.Response(), status)
	c.write(body)
}

func invalidRequest(format string, args ...any) *grants.Error {
	return &grants.Error{Code: oautherr.InvalidRequest, Description: fmt.Sprintf(format, args...)}
}

func invalidClient(description string) *grants.Error {
	return &grants.Error{Code: oautherr.InvalidClient, Description: description}
}
