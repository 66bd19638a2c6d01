package oautherr

import (
	"fmt"
	"time"

	"oauth-server/internal/ratelimit"
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
	// Reason says what happened, in a few words for the client.
	Reason string
}

// RateLimit holds the values of the fields of draft-ietf-httpapi-ratelimit-headers. Empty fields
// are not sent.
type RateLimit struct {
	Policy string // RateLimit-Policy
	Limit  string // RateLimit
}

// Error implements error.
func (e *LimitedError) Error() string { return "limited: " + e.Description() }

// Description is the text for error_description: what happened and how long to wait.
func (e *LimitedError) Description() string {
	return fmt.Sprintf("%s; retry after %s.", e.Reason, Seconds(e.RetryAfter))
}

// ForPeople is the text for a page: what happened and roughly how long to wait.
func (e *LimitedError) ForPeople() string {
	return fmt.Sprintf("%s; try again in %s.", e.Reason, roughly(e.RetryAfter))
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
	return Seconds(d)
}

// Seconds formats a duration in seconds, for texts.
func Seconds(d time.Duration) string {
	if d == time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}

// Of converts a decision on a request of key k into the RateLimit fields of the response, or
// into *[LimitedError].
func Of(k ratelimit.Key, d *ratelimit.Decision) (fields RateLimit, err error) {
	fields.Policy, fields.Limit = d.Headers()
	wait := time.Duration(d.RetryAfterSeconds()) * time.Second
	switch {
	case d.Outcome == ratelimit.Banned:
		return RateLimit{}, &LimitedError{RetryAfter: wait, Limit: banLimit, Banned: true, Reason: bannedFor(k)}
	case d.Rejected():
		st, _ := d.BindingLimit()
		return RateLimit{}, &LimitedError{
			RetryAfter: wait, RateLimit: fields,
			Limit: st.Limit.Name, QuotaExceeded: d.Exceeded(), Violated: d.Violated(), Reason: overQuota(k, d),
		}
	}
	return fields, nil
}

func overQuota(k ratelimit.Key, d *ratelimit.Decision) string {
	switch {
	case d.OverTotal():
		return "Token rate limit exceeded for this client and all its users together"
	case d.OverShared():
		return "Token rate limit exceeded for this client from this address"
	case k.Username == "":
		return "Token rate limit exceeded for this client"
	}
	return "Token rate limit exceeded for this client and user"
}

// banLimit is the name of a ban in the log, in place of the name of a limit.
const banLimit = "ban"

// bannedFor returns the reason for a ban, as shown to the client.
func bannedFor(k ratelimit.Key) string {
	if k.Username == "" {
		return "This client is temporarily banned because it repeatedly exceeded its token rate limit"
	}
	return "This client and user are temporarily banned because they repeatedly exceeded their token rate limit"
}
