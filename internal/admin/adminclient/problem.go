package adminclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"oauth-server/internal/admin/adminapi"
)

// ProblemError is an error answer of the server (RFC 9457).
type ProblemError struct {
	adminapi.Problem
	// RetryAfter is the wait before the next attempt; zero if not given.
	RetryAfter time.Duration
	ETag       string // of the resource; empty if not given
	// Unanswered means that the change may have been made, because the store neither confirmed nor
	// refused it.
	Unanswered bool
}

// Error implements error, with one line for each field.
func (e *ProblemError) Error() string {
	if len(e.Errors) == 0 {
		return e.Title + ": " + e.Detail
	}
	lines := make([]string, len(e.Errors))
	for i, f := range e.Errors {
		lines[i] = strings.TrimPrefix(f.Field+": "+f.Detail, ": ")
	}
	return strings.Join(lines, "\n")
}

// NotFound reports whether the resource does not exist.
func (e *ProblemError) NotFound() bool { return e.Status == http.StatusNotFound }

// Stale reports whether the resource changed after its ETag was read.
func (e *ProblemError) Stale() bool { return e.Status == http.StatusPreconditionFailed }

// Exists reports whether a client or user of that name exists already.
func (e *ProblemError) Exists() bool { return strings.HasSuffix(e.Type, ":exists") }

// Unreadable reports whether the stored client or user cannot be read.
func (e *ProblemError) Unreadable() bool { return strings.HasSuffix(e.Type, ":unreadable") }

// LocksOut reports whether the change needs confirmation because it would lock operators out.
func (e *ProblemError) LocksOut() bool { return strings.HasSuffix(e.Type, ":locks-out-admin") }

func refusal(res *http.Response, body []byte) error {
	e := &ProblemError{ETag: res.Header.Get("ETag")}
	if err := json.Unmarshal(body, &e.Problem); err != nil || e.Title == "" {
		return fmt.Errorf("%w: the response is %s", ErrNoAPI, res.Status)
	}
	e.Status = res.StatusCode
	for _, text := range []*string{&e.Type, &e.Title, &e.Detail} {
		*text = Printable(*text)
	}
	for i, f := range e.Errors {
		e.Errors[i] = adminapi.FieldProblem{Field: Printable(f.Field), Detail: Printable(f.Detail)}
	}
	if n, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

// Printable replaces control characters, which could control the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return '?'
	}, s)
}
