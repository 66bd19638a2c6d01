package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"oauth-server/internal/accesslog"
	"oauth-server/internal/admission"
	"oauth-server/internal/grants"
	"oauth-server/internal/ratelimit"
)

// Constant header values are shared to avoid allocations. These slices are read-only.
var (
	headerJSON      = []string{"application/json"}
	headerNoStore   = []string{"no-store"}
	headerNoCache   = []string{"no-cache"}
	headerChallenge = []string{`Basic realm="oauth-server", charset="UTF-8"`}
)

// oauthError is the body of RFC 6749 5.2. The body of a 429 for a quota has two more members. The
// body of a 429 for a ban, or a 503 under overload, has one more.
type oauthError struct {
	Code        grants.ErrorCode `json:"error"`
	Description string           `json:"error_description,omitempty"`
	URI         string           `json:"error_uri,omitempty"`
	// Type is the problem type of draft-ietf-httpapi-ratelimit-headers. Violated holds the names of
	// the limits in the RateLimit fields that the request exceeds.
	Type     string   `json:"type,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// quotaExceeded is the problem type for a request over a limit of a policy.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// abnormalUsage is the problem type for a request of a banned client or user.
const abnormalUsage = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"

// reducedCapacity is the problem type for a request that was refused under overload.
const reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

// answer is an error answer.
type answer struct {
	status  int
	body    oauthError
	limited *grants.LimitedError // for a 429
	retry   time.Duration        // for a 503, if the retry time is known
}

// answerTo turns any error into its answer. Only a [grants.Error] and a [grants.LimitedError]
// contain text for the client. The cause of any other error is only logged. A refusal under
// overload gets the same answer wherever it happened.
func (s *Server) answerTo(err error) answer {
	if busy := grants.Overloaded(err); busy != nil {
		body := oauthError{Code: busy.Code, Description: describe(busy.Description), Type: reducedCapacity}
		return answer{statusOf(busy.Code), body, nil, busy.RetryAfter}
	}
	var known *grants.Error
	var limited *grants.LimitedError
	switch {
	case errors.As(err, &limited):
		return answerToLimited(limited, s.o.LimitedCode(), s.url+rateLimitsPath)
	case errors.As(err, &known):
		return answer{statusOf(known.Code), oauthError{Code: known.Code, Description: describe(known.Description)}, nil, known.RetryAfter}
	}
	return answerToOurs(err)
}

// OverloadedBody returns the JSON body of the answer to a request that was refused under overload.
func OverloadedBody(shed *admission.ShedError) []byte {
	busy := grants.Overloaded(shed)
	a := answer{body: oauthError{Code: busy.Code, Description: describe(busy.Description), Type: reducedCapacity}}
	return a.encoded()
}

// answerToLimited returns the answer to a request over a limit, with this error code and error_uri.
func answerToLimited(limited *grants.LimitedError, code grants.ErrorCode, uri string) answer {
	body := oauthError{Code: code, Description: describe(limited.Description()), URI: uri, Violated: limited.Violated}
	switch {
	case limited.QuotaExceeded:
		body.Type = quotaExceeded
	case limited.Banned:
		body.Type = abnormalUsage
	}
	return answer{http.StatusTooManyRequests, body, limited, 0}
}

// statusOf returns the HTTP status for an error code (RFC 6749 5.2): 400, except for failed client
// authentication and server errors.
func statusOf(code grants.ErrorCode) int {
	switch code {
	case grants.InvalidClient:
		return http.StatusUnauthorized
	case grants.ServerError:
		return http.StatusInternalServerError
	case grants.TemporarilyUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
}

// answerToOurs returns the answer to errors of this package and of the router, and to unexpected
// errors.
func answerToOurs(err error) answer {
	var routing *echo.HTTPError
	var foreign *crossOriginError
	status, code, description := http.StatusInternalServerError, grants.ServerError, "Something went wrong here; it is not your request."
	switch {
	case errors.As(err, &foreign):
		status, code, description = http.StatusForbidden, grants.InvalidRequest, "This form was sent by a page of another site."
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		status, code, description = routing.Code, grants.InvalidRequest, "This endpoint does not take that method."
	case errors.As(err, &routing) && routing.Code < http.StatusInternalServerError:
		status, code, description = routing.Code, grants.InvalidRequest, "There is nothing at this address."
	}
	return answer{status, oauthError{Code: code, Description: description}, nil, 0}
}

// fail answers every failed request: as JSON for clients, as a page for people.
func (s *Server) fail(c *call, err error) {
	a := s.answerTo(err)
	c.outcome, c.busy, c.shed = string(a.body.Code), a.retry > 0, shedBy(err)
	if a.limited != nil && !accesslog.Denied(c.ctx()) { // denied by a limit outside the policies
		accesslog.NoteDenial(c.ctx(), accesslog.Denial{Outcome: ratelimit.Denied.String(), Limit: a.limited.Limit})
	}
	if a.status >= http.StatusInternalServerError && c.shed == "" { // requests refused under overload are too many to log here; the access log has them
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
func shedBy(err error) admission.Resource {
	var shed *admission.ShedError
	if errors.As(err, &shed) {
		return shed.Short
	}
	return ""
}

// failJSON writes an OAuth error. Only a 401 has a WWW-Authenticate field with the scheme (RFC 6749
// 5.2). With other statuses, some clients would hide the error.
func (s *Server) failJSON(c *call, a answer) {
	if a.status == http.StatusUnauthorized {
		c.Response().Header()["Www-Authenticate"] = headerChallenge
	}
	a.setRetry(c.Response().Header())
	writeJSON(c, a.status, a.encoded())
}

// encoded returns the body as JSON.
func (a *answer) encoded() []byte {
	body, err := json.Marshal(a.body)
	if err != nil {
		panic(fmt.Sprintf("httpapi: an error body of strings does not encode: %v", err))
	}
	return body
}

// setRetry sets the RateLimit fields, and Retry-After (RFC 9110 10.2.3) if the time is known.
func (a *answer) setRetry(h http.Header) {
	if a.limited != nil {
		setLimited(h, a.limited)
	} else if a.retry > 0 {
		setRetryAfter(h, a.retry)
	}
}

func setLimited(h http.Header, e *grants.LimitedError) {
	setRetryAfter(h, e.RetryAfter)
	setRateLimit(h, e.RateLimit)
}

func setRetryAfter(h http.Header, d time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(int64(d/time.Second), 10))
}

// setRateLimit sets the fields of draft-ietf-httpapi-ratelimit-headers. Their names keep their
// capitals on the wire.
func setRateLimit(h http.Header, r grants.RateLimit) {
	names := ratelimit.Fields()
	if r.Policy != "" {
		h[names.Policy] = []string{r.Policy}
	}
	if r.Limit != "" {
		h[names.Limit] = []string{r.Limit}
	}
}

// writeJSON writes an answer that must not be cached (RFC 6749 5.1).
func writeJSON(c *call, status int, body []byte) {
	beginJSON(c.Response(), status)
	c.write(body)
}

// beginJSON writes the status and the header of an answer that must not be cached.
func beginJSON(w http.ResponseWriter, status int) {
	h := w.Header()
	h["Content-Type"] = headerJSON
	h["Cache-Control"] = headerNoStore
	h["Pragma"] = headerNoCache
	w.WriteHeader(status)
}

func invalidRequest(format string, args ...any) *grants.Error {
	return &grants.Error{Code: grants.InvalidRequest, Description: fmt.Sprintf(format, args...)}
}

func invalidClient(description string) *grants.Error {
	return &grants.Error{Code: grants.InvalidClient, Description: description}
}

// describe replaces the characters in a description that RFC 6749 does not allow (4.1.2.1, 5.2). It
// allows printable ASCII without quotes and backslashes.
func describe(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < 0x20 || r > 0x7e:
			return '?'
		}
		return r
	}, s)
}
