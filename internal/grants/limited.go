package grants

import (
	"fmt"
	"time"
)

// LimitedError is returned for a request that came too soon. The response is 429 with Retry-After.
// The request consumed nothing, so its code or token stays valid.
type LimitedError struct {
	// RetryAfter is in whole seconds, rounded up. After it the same request is admitted, unless
	// other requests were sent in between.
	RetryAfter time.Duration
	// RateLimit holds the rate limit fields of the response. They are empty if operators hide them,
	// and after failed attempts, which have no quota.
	RateLimit RateLimit
	// Limit is the name of the limit that denies, for the log. A limit of the policy has its own
	// name. Any other limit is named by its place in the configuration.
	Limit string
	// QuotaExceeded is set if the request is over a limit of the policy, even if operators hide the
	// limit.
	QuotaExceeded bool
	// Banned is set if a ban denied the request. RetryAfter is then the rest of the ban.
	Banned bool
	// Violated names the policy limits that the request exceeds, for the client. It is empty if
	// RateLimit is.
	Violated []string
	reason   string
}

// RateLimit holds the values of the fields of draft-ietf-httpapi-ratelimit-headers. Empty fields
// are not sent.
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

// ForPeople is the text for a page: what happened and roughly how long to wait.
func (e *LimitedError) ForPeople() string {
	return fmt.Sprintf("%s; try again in %s.", e.reason, roughly(e.RetryAfter))
}

// roughly formats a duration, rounded up, in the largest unit that gives at least two.
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

// wholeSeconds rounds up, so a caller that waits this long is not early.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// inSeconds formats a duration in seconds.
func inSeconds(d time.Duration) string {
	if d == time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// RetryAfterSeconds is the value of the Retry-After field (RFC 9110 10.2.3).
func (e *LimitedError) RetryAfterSeconds() int64 { return int64(e.RetryAfter / time.Second) }
