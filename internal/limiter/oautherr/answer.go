package oautherr

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
)

// Body is the JSON of an error (RFC 6749 5.2). The body of a 429 for a quota has two more members.
// The body of a 429 for a ban, or a 503 under overload, has one more.
type Body struct {
	Code        Code   `json:"error"`
	Description string `json:"error_description,omitempty"`
	URI         string `json:"error_uri,omitempty"`
	// Type is the problem type of draft-ietf-httpapi-ratelimit-headers. Violated holds the names of
	// the limits in the RateLimit fields that the request exceeds.
	Type     string   `json:"type,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// The problem types of [Body].Type.
const (
	QuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	AbnormalUsage   = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
	ReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// Answer is an error answer over HTTP.
type Answer struct {
	Status  int
	Body    Body
	Limited *LimitedError // for a 429
	Retry   time.Duration // for a 503, if the retry time is known
}

// NewAnswer returns an answer with this status, code and description.
func NewAnswer(status int, code Code, description string) Answer {
	return Answer{Status: status, Body: Body{Code: code, Description: Describe(description)}}
}

// AnswerTo returns the answer to a request over a limit, with this error code and error_uri.
func AnswerTo(limited *LimitedError, code Code, uri string) Answer {
	a := NewAnswer(http.StatusTooManyRequests, code, limited.Description())
	a.Limited, a.Body.URI, a.Body.Violated = limited, uri, limited.Violated
	switch {
	case limited.QuotaExceeded:
		a.Body.Type = QuotaExceeded
	case limited.Banned:
		a.Body.Type = AbnormalUsage
	}
	return a
}

// Encoded returns the body as JSON.
func (a *Answer) Encoded() []byte {
	body, err := json.Marshal(a.Body)
	if err != nil {
		panic(fmt.Sprintf("oautherr: encode error body: %v", err))
	}
	return body
}

// SetRetry sets the RateLimit fields, and Retry-After (RFC 9110 10.2.3) if the time is known.
func (a *Answer) SetRetry(h http.Header) {
	if a.Limited != nil {
		SetRetryAfter(h, a.Limited.RetryAfter)
		a.Limited.RateLimit.Set(h)
	} else if a.Retry > 0 {
		SetRetryAfter(h, a.Retry)
	}
}

// Write writes the answer. origin is the Origin of the calling script, if any. That script may read
// the answer.
func (a *Answer) Write(w http.ResponseWriter, origin string) error {
	a.SetRetry(w.Header())
	allowOrigin(w.Header(), origin)
	BeginJSON(w, a.Status)
	_, err := w.Write(a.Encoded())
	return err
}

// BeginJSON writes the status and the header of a JSON answer that must not be cached.
func BeginJSON(w http.ResponseWriter, status int) {
	h := w.Header()
	h["Content-Type"] = headerJSON
	NoStore(h)
	w.WriteHeader(status)
}

// NoStore forbids caches to store the answer (RFC 6749 5.1).
func NoStore(h http.Header) {
	h["Cache-Control"], h["Pragma"] = headerNoStore, headerNoCache
}

// Constant header values are shared to avoid allocations. These slices are read-only.
var (
	headerJSON    = []string{"application/json"}
	headerNoStore = []string{"no-store"}
	headerNoCache = []string{"no-cache"}
)

// SetRetryAfter sets Retry-After to whole seconds.
func SetRetryAfter(h http.Header, d time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(int64(d/time.Second), 10))
}

// Describe replaces the characters in a description that RFC 6749 does not allow (4.1.2.1, 5.2). It
// allows printable ASCII without quotes and backslashes.
func Describe(s string) string {
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

// Set sets the fields of draft-ietf-httpapi-ratelimit-headers. Their names keep their capitals on
// the wire.
func (r RateLimit) Set(h http.Header) {
	names := ratelimit.Fields()
	if r.Policy != "" {
		h[names.Policy] = []string{r.Policy}
	}
	if r.Limit != "" {
		h[names.Limit] = []string{r.Limit}
	}
}

// Add is Set for the answer of another server. It adds nothing if the answer already has RateLimit
// fields. If scripts of another site may read the answer, they may also read the fields.
func (r RateLimit) Add(h http.Header) {
	if h["Ratelimit"] != nil || h["Ratelimit-Policy"] != nil {
		return
	}
	r.Set(h)
	if r != (RateLimit{}) && h[allowOriginField] != nil {
		h.Add(exposeHeadersField, limitFields)
	}
}

const (
	allowOriginField   = "Access-Control-Allow-Origin"
	exposeHeadersField = "Access-Control-Expose-Headers"
)

var limitFields = ratelimit.Fields().Limit + ", " + ratelimit.Fields().Policy

// ExposedFields returns the fields of our own answers that scripts of other sites may read, as the
// value of Access-Control-Expose-Headers.
func ExposedFields() string { return exposed }

var exposed = "Retry-After, " + limitFields + ", WWW-Authenticate, X-Request-Id"

// allowOrigin lets scripts of other sites read an answer that does not depend on cookies. Otherwise
// scripts see only a network failure. origin is the Origin of the request, or empty for any origin.
// The answer repeats it, so a script that sent cookies may read the answer too. If an outer handler
// has set Access-Control-Allow-Origin, it stays unchanged.
func allowOrigin(h http.Header, origin string) {
	if h[allowOriginField] == nil {
		h.Set(allowOriginField, "*")
		if origin != "" {
			h.Set(allowOriginField, origin)
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		h.Add("Vary", "Origin")
	}
	h.Add(exposeHeadersField, exposed)
}
