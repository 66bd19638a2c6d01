package tokenclient

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// ServerError is a refusal by the server: from the token endpoint (RFC 6749 section 5.2), or, with
// Status 0, from the authorization endpoint through the callback (section 4.1.2.1).
type ServerError struct {
	Status      int    // HTTP status
	Code        string // "error"; empty if the answer was not OAuth's
	Description string // "error_description"
	URI         string // "error_uri": a page for the developer
	// RetryAfter is how long to wait before the next attempt; zero if it is unknown.
	RetryAfter time.Duration
}

// Error implements error, with all parts of the answer on one line.
func (e *ServerError) Error() string {
	var b strings.Builder
	b.WriteString("the server refused")
	if e.Status != 0 {
		fmt.Fprintf(&b, " with status %d", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, ": %s", e.Code)
	}
	if e.Description != "" {
		fmt.Fprintf(&b, ": %s", e.Description)
	}
	if e.URI != "" {
		fmt.Fprintf(&b, " (see %s)", e.URI)
	}
	return b.String()
}

// Limited reports whether the status is 429: the client should wait for RetryAfter, and the code or
// refresh token of the request stays valid.
func (e *ServerError) Limited() bool { return e.Status == http.StatusTooManyRequests }

// serverError turns the error of x/oauth2 for a refusal into a [*ServerError]. Other errors are
// returned unchanged.
func serverError(err error, now time.Time) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.Response == nil {
		return err
	}
	return &ServerError{
		Status:      refused.Response.StatusCode,
		Code:        printable(refused.ErrorCode),
		Description: printable(refused.ErrorDescription),
		URI:         printable(refused.ErrorURI),
		RetryAfter:  retryAfter(refused.Response.Header.Get("Retry-After"), now),
	}
}

// retryAfter reads the header in either of its forms (RFC 9110 section 10.2.3): seconds, or a date.
// A malformed header counts as absent.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// printable replaces control characters by spaces, so that a server cannot control the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || (r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}
