package adminclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// ProblemError is a refusal in the server's own words (RFC 9457).
type ProblemError struct {
	Status int
	Type   string
	Title  string
	Detail string
	Fields []Field
	// RetryAfter is how long to wait before the next attempt; zero if the
	// server did not say.
	RetryAfter time.Duration
	ETag       string // of the resource, where that was sent along
}

// Field is one thing that is wrong with what was sent.
type Field struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Error implements error, with one line for each field.
func (e *ProblemError) Error() string {
	if len(e.Fields) == 0 {
		return e.Title + ": " + e.Detail
	}
	lines := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		lines[i] = strings.TrimPrefix(f.Field+": "+f.Detail, ": ")
	}
	return strings.Join(lines, "\n")
}

// NotFound reports whether there was nothing.
func (e *ProblemError) NotFound() bool { return e.Status == http.StatusNotFound }

// Stale reports whether somebody else made a change meanwhile.
func (e *ProblemError) Stale() bool { return e.Status == http.StatusPreconditionFailed }

func refusal(res *http.Response, body []byte) error {
	var p struct {
		Type, Title, Detail string
		Errors              []Field
	}
	if err := json.Unmarshal(body, &p); err != nil || p.Title == "" {
		return fmt.Errorf("%w: it answers %s", ErrNoAPI, res.Status)
	}
	e := &ProblemError{
		Status: res.StatusCode, Type: printable(p.Type), Title: printable(p.Title), Detail: printable(p.Detail),
		ETag: res.Header.Get("ETag"),
	}
	for _, f := range p.Errors {
		e.Fields = append(e.Fields, Field{printable(f.Field), printable(f.Detail)})
	}
	if n, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	return e
}

// printable keeps what a server says from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return '?'
	}, s)
}
