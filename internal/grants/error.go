package grants

import (
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/secret"
)

// ErrorCode is an OAuth error code, the value of the "error" parameter.
type ErrorCode string

// The error codes of RFC 6749 sections 4.1.2.1 and 5.2.
const (
	InvalidRequest          ErrorCode = "invalid_request"
	InvalidClient           ErrorCode = "invalid_client"
	InvalidGrant            ErrorCode = "invalid_grant"
	UnauthorizedClient      ErrorCode = "unauthorized_client"
	UnsupportedGrantType    ErrorCode = "unsupported_grant_type"
	UnsupportedResponseType ErrorCode = "unsupported_response_type"
	InvalidScope            ErrorCode = "invalid_scope"
	AccessDenied            ErrorCode = "access_denied"
	ServerError             ErrorCode = "server_error"
	TemporarilyUnavailable  ErrorCode = "temporarily_unavailable"
	UnsupportedTokenType    ErrorCode = "unsupported_token_type" // RFC 7009 2.2.1
)

// Error codes of OpenID Connect Core 1.0 section 3.1.2.6 that this server uses. Each means that a
// page is needed but the request forbids pages.
const (
	LoginRequired       ErrorCode = "login_required"
	ConsentRequired     ErrorCode = "consent_required"
	InteractionRequired ErrorCode = "interaction_required"
)

// Error is a failure with an OAuth error code. Description is for the client's developer and never
// contains a secret or the cause. Cause is for the log.
type Error struct {
	Code        ErrorCode
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

func fail(code ErrorCode, description string) *Error {
	return &Error{Code: code, Description: description}
}

// storeFailed returns the error for an internal failure, which asks the client to try again. The
// client does not see the cause.
func storeFailed(doing string, cause error) *Error {
	cause = fmt.Errorf("%s: %w", doing, cause)
	if busy := Overloaded(cause); busy != nil {
		return busy
	}
	return &Error{
		Code:        TemporarilyUnavailable,
		Description: "The server cannot answer this at the moment. Try again.",
		Cause:       cause,
	}
}

// Overloaded returns the *Error for a request that was shed because the server is overloaded, or
// nil for other errors.
func Overloaded(err error) *Error {
	var shed *admission.ShedError
	if !errors.As(err, &shed) {
		return nil
	}
	return &Error{
		Code:        TemporarilyUnavailable,
		Description: "The server is overloaded; retry after " + inSeconds(shed.RetryAfter) + ".",
		Cause:       err,
		RetryAfter:  shed.RetryAfter,
	}
}

// tooBusy returns the error for a sign-in when passwords cannot be hashed soon enough.
func tooBusy(cause *secret.BusyError) *Error {
	return &Error{
		Code:        TemporarilyUnavailable,
		Description: "Too many people are signing in at the moment; retry after " + inSeconds(cause.RetryAfter) + ".",
		Cause:       cause,
		RetryAfter:  cause.RetryAfter,
	}
}
