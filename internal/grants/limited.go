package grants

import (
	"fmt"
	"time"
)

// LimitedError is a request that comes too soon: the answer is 429 with
// Retry-After. Nothing that the client holds was consumed by it.
type LimitedError struct {
	// RetryAfter is in whole seconds, rounded up: after it the same request
	// is admitted if nothing else was sent meanwhile.
	RetryAfter time.Duration
	// RateLimit are the fields for the answer. They are empty where operators
	// hide them, and after failed attempts, which have no quota.
	RateLimit RateLimit
	reason    string
}

// RateLimit are the values of the fields of draft-ietf-httpapi-ratelimit-headers.
// Both are empty where there is nothing to say.
type RateLimit struct {
	Policy string // RateLimit-Policy
	Limit  string // RateLimit
}

// Error implements error.
func (e *LimitedError) Error() string { return "grants: limited: " + e.Description() }

// Code is the OAuth error code. RFC 6749 has none for this case; this one says
// best what to do.
func (e *LimitedError) Code() ErrorCode { return TemporarilyUnavailable }

// Description says what happened and what to do, for error_description.
func (e *LimitedError) Description() string {
	unit := "seconds"
	if e.RetryAfterSeconds() == 1 {
		unit = "second"
	}
	return fmt.Sprintf("%s; retry after %d %s.", e.reason, e.RetryAfterSeconds(), unit)
}

// RetryAfterSeconds is the value of the Retry-After field (RFC 9110 10.2.3).
func (e *LimitedError) RetryAfterSeconds() int64 { return int64(e.RetryAfter / time.Second) }
