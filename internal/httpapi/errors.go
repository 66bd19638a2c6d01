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

// Header values that never change are shared, so that setting them costs no allocation. These
// slices are read-only.
var (
	headerJSON      = []string{"application/json"}
	headerNoStore   = []string{"no-store"}
	headerNoCache   = []string{"no-cache"}
	headerChallenge = []string{`Basic realm="oauth-server", charset="UTF-8"`}
)

// oauthError is the body of RFC 6749 5.2. That of a 429 for a quota has two members more; for a ban, and of a 503 of
// an overloaded server, one.
type oauthError struct {
	Code        grants.ErrorCode `json:"error"`
	Description string           `json:"error_description,omitempty"`
	URI         string           `json:"error_uri,omitempty"`
	// Type is the problem type of draft-ietf-httpapi-ratelimit-headers, and Violated the names of the
	// limits in the RateLimit fields that the request is over.
	Type     string   `json:"type,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// quotaExceeded is the problem type of a request over a limit of a policy.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// abnormalUsage is that of a request of who is banned.
const abnormalUsage = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"

// reducedCapacity is that of a request that was refused because the server is overloaded.
const reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

// answer is a failure as it goes out.
type answer struct {
	status  int
	body    oauthError
	limited *grants.LimitedError // of a 429
	retry   time.Duration        // of a 503, if it is known when to try again
}

// answerTo turns any error into its answer. Only a [grants.Error] and a [grants.LimitedError] carry
// text for the client; the cause of any other error is for the log. An overloaded server is answered for in the same
// way wherever the request was refused.
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

// OverloadedBody is the body of the answer to a request that was refused because the server is overloaded, in JSON.
func OverloadedBody(shed *admission.ShedError) []byte {
	busy := grants.Overloaded(shed)
	a := answer{body: oauthError{Code: busy.Code, Description: describe(busy.Description), Type: reducedCapacity}}
	return a.encoded()
}

// answerToLimited is the answer to a request over a limit, with that error code and error_uri.
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

// statusOf returns the HTTP status that goes with an error code (RFC 6749 5.2): 400 for all but a
// failed client authentication and failures of the server.
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

// answerToOurs is the answer to errors of this package and of the router, and to unexpected ones.
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

// fail is the one place where a failure is answered: as JSON to clients, as a page to people.
func (s *Server) fail(c *call, err error) {
	a := s.answerTo(err)
	c.outcome, c.busy, c.shed = string(a.body.Code), a.retry > 0, shedBy(err)
	if a.limited != nil && !accesslog.Denied(c.ctx()) { // by a limit that is no policy's
		accesslog.NoteDenial(c.ctx(), accesslog.Denial{Outcome: ratelimit.Denied.String(), Limit: a.limited.Limit})
	}
	if a.status >= http.StatusInternalServerError && c.shed == "" { // of those there are many, and the access log has them
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

// shedBy returns what there was not enough of if the error is that of a request that an overloaded server refused;
// empty if it is another one.
func shedBy(err error) admission.Resource {
	var shed *admission.ShedError
	if errors.As(err, &shed) {
		return shed.Short
	}
	return ""
}

// failJSON writes an OAuth error. A 401 names the scheme to authenticate with (RFC 6749 5.2); no
// other status does, or some clients hide the error.
func (s *Server) failJSON(c *call, a answer) {
	if a.status == http.StatusUnauthorized {
		c.Response().Header()["Www-Authenticate"] = headerChallenge
	}
	a.setRetry(c.Response().Header())
	writeJSON(c, a.status, a.encoded())
}

// encoded is the body in JSON.
func (a *answer) encoded() []byte {
	body, err := json.Marshal(a.body)
	if err != nil {
		panic(fmt.Sprintf("httpapi: an error body of strings does not encode: %v", err))
	}
	return body
}

// setRetry sets Retry-After (RFC 9110 10.2.3), if it is known, and the RateLimit fields.
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

// beginJSON writes the status and the header of such an answer.
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

// describe keeps a description inside the characters that RFC 6749 allows for it (4.1.2.1, 5.2):
// visible ASCII and space, without quote and backslash.
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
