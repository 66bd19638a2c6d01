package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict/fielderr"
)

// problemError is an error together with its response.
type problemError struct {
	adminapi.Problem

	challenge  string // value of WWW-Authenticate
	retryAfter int64  // seconds
	cause      error  // for the log only
}

// Error implements error, for logs.
func (p *problemError) Error() string {
	if p.cause != nil {
		return fmt.Sprintf("%s: %s: %v", p.Title, p.Detail, p.cause)
	}
	return p.Title + ": " + p.Detail
}

// Unwrap returns the cause.
func (p *problemError) Unwrap() error { return p.cause }

// The problem types. They are names, not addresses.
const (
	typePrefix = "urn:oauth-server:problem:"

	typeUnauthorized = typePrefix + "unauthorized"
	typeForbidden    = typePrefix + "forbidden"
	typeThrottled    = typePrefix + "too-many-failures"
	typeNotFound     = typePrefix + "not-found"
	typeMethod       = typePrefix + "method-not-allowed"
	typeInvalid      = typePrefix + "invalid"
	typeMedia        = typePrefix + "unsupported-media-type"
	typeTooLarge     = typePrefix + "too-large"
	typeNoCondition  = typePrefix + "precondition-required"
	typeStale        = typePrefix + "stale"
	typeConflict     = typePrefix + "conflict"
	typeExists       = typePrefix + "exists"
	typeUnreadable   = typePrefix + "unreadable"
	typeLockOut      = typePrefix + "locks-out-admin"
	typeUnavailable  = typePrefix + "unavailable"
	typeInternal     = typePrefix + "internal"
)

func problem(status int, kind, title, format string, args ...any) *problemError {
	return &problemError{Problem: adminapi.Problem{Type: kind, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}}
}

func notFound(format string, args ...any) *problemError {
	return problem(http.StatusNotFound, typeNotFound, "Not found", format, args...)
}

func conflict(format string, args ...any) *problemError {
	return problem(http.StatusConflict, typeConflict, "Not possible now", format, args...)
}

// invalidField returns a problem with a single field or parameter.
func invalidField(field, format string, args ...any) *problemError {
	return invalid(fielderr.Errors{{Path: field, Message: fmt.Sprintf(format, args...)}})
}

// invalid returns the problem for a document with these errors.
func invalid(fields fielderr.Errors) *problemError {
	p := problem(http.StatusUnprocessableEntity, typeInvalid, "Invalid value", "%s", fields.Error())
	for _, f := range fields {
		f = f.Short()
		p.Errors = append(p.Errors, adminapi.FieldProblem{Field: f.Path, Detail: f.Message})
	}
	return p
}

// malformed returns the problem for a body that is not JSON.
func malformed(format string, args ...any) *problemError {
	return problem(http.StatusBadRequest, typeInvalid, "Malformed request", format, args...)
}

// problemOf returns the problem for any error.
func problemOf(err error) *problemError {
	var known *problemError
	var lock *clientcfg.LockOutError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &lock):
		return problem(http.StatusConflict, typeLockOut, "Would lock out an admin client", "%v", err)
	case fielderr.Of(err) != nil:
		return invalid(fielderr.Of(err))
	}
	p := problem(http.StatusServiceUnavailable, typeUnavailable, "Store not available", storeAway)
	p.cause = err
	return p
}

// storeAway is the detail for an error of the store.
const storeAway = "the store could not be asked; try again"

// write sends the problem.
func (p *problemError) write(c *call) {
	h := c.Response().Header()
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if p.retryAfter > 0 {
		h.Set("Retry-After", fmt.Sprint(p.retryAfter))
	}
	body, err := json.Marshal(p.Problem)
	if err != nil { // it has only strings and numbers
		panic(fmt.Sprintf("admin: a problem does not encode: %v", err))
	}
	c.write("application/problem+json", p.Status, body)
}
