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

// ServerError is a refusal in the server's own words: from the token endpoint
// (RFC 6749 section 5.2), or, with Status 0, from the authorization endpoint by
// way of the callback (section 4.1.2.1).
type ServerError struct {
	Status      int    // HTTP status
	Code        string // "error"; empty if the answer was not OAuth's
	Description string // "error_description"
	URI         string // "error_uri": a page for the developer
	// RetryAfter is how long to wait before the next attempt; zero if the
	// server did not say.
	RetryAfter time.Duration
}

// Error implements error with everything the server said, on one line.
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

// Limited reports whether the client asked too often: it should wait for
// RetryAfter, and what it holds stays good meanwhile.
func (e *ServerError) Limited() bool { return e.Status == http.StatusTooManyRequests }

// serverError turns the error of x/oauth2 into ours; others stay as they are.
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

// retryAfter reads the header in either of its forms (RFC 9110 section
// 10.2.3): seconds, or a date. What cannot be read counts as absent.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// printable keeps a server from steering the terminal: control characters of
// its text become spaces.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || (r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}
