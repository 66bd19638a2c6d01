package grants

import (
	"fmt"
	"time"
)

// LimitedError is a request that came too soon: the answer is 429 with Retry-After. The request
// consumed nothing, so what the client presented stays valid.
type LimitedError struct {
	// RetryAfter is in whole seconds, rounded up: after it the same request is admitted if no other
	// was sent meanwhile.
	RetryAfter time.Duration
	// RateLimit holds the fields of the answer. They are empty where operators hide them, and after
	// failed attempts, which have no quota.
	RateLimit RateLimit
	// Limit names the limit that denies, for the log: as in the policy, or, of limits that are no
	// policy's, by its place in the configuration.
	Limit string
	// QuotaExceeded is set if the request is over a limit of the policy, also where operators hide it.
	QuotaExceeded bool
	// Banned is set if the request was denied by a ban. RetryAfter is the rest of it.
	Banned bool
	// Violated names the limits of the policy that the request is over, for the client. It is empty where
	// RateLimit is.
	Violated []string
	reason   string
}

// RateLimit holds the values of the fields of draft-ietf-httpapi-ratelimit-headers. An empty field
// is not sent.
type RateLimit struct {
	Policy string // RateLimit-Policy
	Limit  string // RateLimit
}

// Error implements error.
func (e *LimitedError) Error() string { return "grants: limited: " + e.Description() }

// Description is the text for error_description: what happened and how long to wait.
func (e *LimitedError) Description() string {
	return fmt.Sprintf("%s; retry after %s.", e.reason, inSeconds(e.RetryAfter))
}

// ForPeople is the text for a page: what happened and about how long to wait.
func (e *LimitedError) ForPeople() string {
	return fmt.Sprintf("%s; try again in %s.", e.reason, roughly(e.RetryAfter))
}

// roughly writes a duration out, rounded up, in the largest unit of which there are at least two.
func roughly(d time.Duration) string {
	for _, unit := range []struct {
		time.Duration
		name string
	}{{time.Hour, "hours"}, {time.Minute, "minutes"}} {
		if d >= 2*unit.Duration {
			return fmt.Sprintf("about %d %s", (d+unit.Duration-1)/unit.Duration, unit.name)
		}
	}
	return inSeconds(d)
}

// wholeSeconds rounds up, so that those who wait for so long do not come too early.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// inSeconds writes a duration out.
func inSeconds(d time.Duration) string {
	if d == time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// RetryAfterSeconds is the value of the Retry-After field (RFC 9110 10.2.3).
func (e *LimitedError) RetryAfterSeconds() int64 { return int64(e.RetryAfter / time.Second) }
