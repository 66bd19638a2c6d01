package tokenlimit

import (
	"time"

	"oauth-server/internal/gateway"
	"oauth-server/internal/ratelimit"
)

// Outcome is the result of a token request.
type Outcome string

// The values of Outcome.
const (
	Issued  Outcome = "issued"  // the endpoint answered with a token
	Failed  Outcome = "failed"  // the endpoint answered without a token, or panicked: not counted
	Denied  Outcome = "denied"  // 429; the endpoint was not called
	Refused Outcome = "refused" // 400 or 413, because the request is ambiguous or too large; the endpoint was not called
)

// Event describes one token request.
type Event struct {
	// ClientID and GrantType are as in the request. Only a token proves them.
	ClientID, GrantType string
	// User is the user that the request counts against, or would have. It is empty if the user is
	// unknown, and for client_credentials. Only a token proves it: before that, it may be any text
	// that someone typed.
	User    string
	Outcome Outcome
	// Status is the status of the answer, or 0 if there was no answer.
	Status int
	// OverLimit is set if the request was over a limit, also in dry-run mode. It is not set if the
	// request was denied because too many unproven requests are in progress.
	OverLimit bool
	// Late is set if the request was over a limit, but only the answer showed its user. The token
	// was still issued.
	Late bool
	// Limit is the name of the limit that decided, or the limit with the smallest share left. It is
	// empty if no limit applied. Remaining is the number of requests left in it. RetryAfter is the
	// time until there is room again, if there was no room.
	Limit      string
	Remaining  int64
	RetryAfter time.Duration
}

var outcomes = map[gateway.Outcome]Outcome{
	gateway.Issued: Issued, gateway.Denied: Denied, gateway.Crowded: Denied, gateway.Refused: Refused,
}

func eventOf(r *gateway.Result) Event {
	e := Event{
		ClientID: r.ClientID, GrantType: r.Grant, User: r.Username, Status: r.Status, Late: r.Late,
		Outcome: Failed, OverLimit: r.Decision.Rejected() || r.Decision.Outcome == ratelimit.WouldDeny,
		RetryAfter: r.Decision.RetryAfter,
	}
	if o, ok := outcomes[r.Outcome]; ok {
		e.Outcome = o
	}
	if st, ok := r.Decision.BindingLimit(); ok {
		e.Limit, e.Remaining = st.Limit.Name, st.Remaining
	}
	return e
}
