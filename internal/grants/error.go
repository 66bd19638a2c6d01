package grants

import (
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
)

// Error is a failure with an OAuth error code. Description is for the client's developer and never
// contains a secret or the cause. Cause is for the log.
type Error struct {
	Code        oautherr.Code
	Description string
	Cause       error
	// RetryAfter is when to try again, in whole seconds. 0 means unknown.
	RetryAfter time.Duration
}

// Error implements error. It includes the cause, so use it for logs only.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Description, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Description)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func fail(code oautherr.Code, description string) *Error {
	return &Error{Code: code, Description: description}
}

// storeFailed returns the error for an internal failure, which asks the client to try again. The
// client does not see the cause.
func storeFailed(doing string, cause error) *Error {
	return unavailable(fmt.Errorf("%s: %w", doing, cause))
}

func unavailable(cause error) *Error {
	if busy := Overloaded(cause); busy != nil {
		return busy
	}
	return &Error{
		Code:        oautherr.TemporarilyUnavailable,
		Description: "The server is temporarily unavailable. Try again.",
		Cause:       cause,
	}
}

// Overloaded returns the *Error for a request that was shed because the server is overloaded, or
// nil for other errors.
func Overloaded(err error) *Error {
	var shed *overload.ShedError
	if !errors.As(err, &shed) {
		return nil
	}
	return &Error{
		Code:        oautherr.TemporarilyUnavailable,
		Description: "The server is overloaded; retry after " + oautherr.Seconds(shed.RetryAfter) + ".",
		Cause:       err,
		RetryAfter:  shed.RetryAfter,
	}
}

// tooBusy returns the error for a sign-in when passwords cannot be hashed soon enough.
func tooBusy(cause *secret.BusyError) *Error {
	return &Error{
		Code:        oautherr.TemporarilyUnavailable,
		Description: "Too many users are signing in; retry after " + oautherr.Seconds(cause.RetryAfter) + ".",
		Cause:       cause,
		RetryAfter:  cause.RetryAfter,
	}
}
