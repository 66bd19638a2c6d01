// Package problem has the errors of the admin API together with their responses: problem details
// (RFC 9457) that name the field and the allowed range. [Of] makes one of any error.
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg/lockout"
	"oauth-server/internal/strict/fielderr"
)

// Error is an error together with its response.
type Error struct {
	adminapi.Problem

	Challenge  string // value of WWW-Authenticate
	RetryAfter int64  // seconds
	Cause      error  // for the log only
}

// Error implements error, for logs.
func (p *Error) Error() string {
	if p.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", p.Title, p.Detail, p.Cause)
	}
	return p.Title + ": " + p.Detail
}

// Unwrap returns the cause.
func (p *Error) Unwrap() error { return p.Cause }

// The problem types. They are names, not addresses.
const (
	TypePrefix = "urn:oauth-server:problem:"

	TypeUnauthorized = TypePrefix + "unauthorized"
	TypeForbidden    = TypePrefix + "forbidden"
	TypeThrottled    = TypePrefix + "too-many-failures"
	typeNotFound     = TypePrefix + "not-found"
	TypeMethod       = TypePrefix + "method-not-allowed"
	typeInvalid      = TypePrefix + "invalid"
	TypeMedia        = TypePrefix + "unsupported-media-type"
	TypeTooLarge     = TypePrefix + "too-large"
	TypeNoCondition  = TypePrefix + "precondition-required"
	TypeStale        = TypePrefix + "stale"
	TypeConflict     = TypePrefix + "conflict"
	TypeExists       = TypePrefix + "exists"
	TypeUnreadable   = TypePrefix + "unreadable"
	TypeLockOut      = TypePrefix + "locks-out-admin"
	TypeUnavailable  = TypePrefix + "unavailable"
	TypeInternal     = TypePrefix + "internal"
)

// New returns a problem with a status, a type and a title.
func New(status int, kind, title, format string, args ...any) *Error {
	return &Error{Problem: adminapi.Problem{Type: kind, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}}
}

// NotFound returns the problem for something that does not exist.
func NotFound(format string, args ...any) *Error {
	return New(http.StatusNotFound, typeNotFound, "Not found", format, args...)
}

// Conflict returns the problem for a change that is not possible now.
func Conflict(format string, args ...any) *Error {
	return New(http.StatusConflict, TypeConflict, "Not possible", format, args...)
}

// InvalidField returns a problem with a single field or parameter.
func InvalidField(field, format string, args ...any) *Error {
	return Invalid(fielderr.Errors{{Path: field, Message: fmt.Sprintf(format, args...)}})
}

// Invalid returns the problem for a document with these errors.
func Invalid(fields fielderr.Errors) *Error {
	p := New(http.StatusUnprocessableEntity, typeInvalid, "Invalid value", "%s", fields.Error())
	for _, f := range fields {
		f = f.Short()
		p.Errors = append(p.Errors, adminapi.FieldProblem{Field: f.Path, Detail: f.Message})
	}
	return p
}

// Malformed returns the problem for a body that is not JSON.
func Malformed(format string, args ...any) *Error {
	return New(http.StatusBadRequest, typeInvalid, "Malformed request", format, args...)
}

// Of returns the problem for any error.
func Of(err error) *Error {
	var known *Error
	var lock *lockout.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &lock):
		return New(http.StatusConflict, TypeLockOut, "Would lock out an admin client", "%v", err)
	case fielderr.Of(err) != nil:
		return Invalid(fielderr.Of(err))
	}
	p := New(http.StatusServiceUnavailable, TypeUnavailable, "Store unavailable", StoreAway)
	p.Cause = err
	return p
}

// StoreAway is the detail for an error of the store.
const StoreAway = "the store is unavailable; try again"

// Write sends the problem.
func (p *Error) Write(w http.ResponseWriter) {
	h := w.Header()
	if p.Challenge != "" {
		h.Set("WWW-Authenticate", p.Challenge)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	body, err := json.Marshal(p.Problem)
	if err != nil { // it has only strings and numbers
		panic(fmt.Sprintf("admin: encode problem: %v", err))
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}
