package tokenlimit

import (
	"time"

	"oauth-server/internal/gateway"
	"oauth-server/internal/ratelimit"
)

// Outcome is what became of a token request.
type Outcome string

// The values of Outcome.
const (
	Issued  Outcome = "issued"  // the endpoint answered with a token
	Failed  Outcome = "failed"  // the endpoint answered something else, or panicked: not counted
	Denied  Outcome = "denied"  // 429; the endpoint was not called
	Refused Outcome = "refused" // 400 or 413, because it is ambiguous or too large; the endpoint was not called
)

// Event is what became of one token request.
type Event struct {
	// ClientID and GrantType are as the request says. Only a token proves them.
	ClientID, GrantType string
	// User is whom the request counts against, or would have. It is empty if that is not known, and for
	// client_credentials. Only a token proves it: before, it may be any text that was typed into its field.
	User    string
	Outcome Outcome
	// Status is that of the answer, 0 if there was none.
	Status int
	// OverLimit is set if a limit had no room, in dry-run too. It is not if the request was denied because too many that prove
	// nothing yet are under way.
	OverLimit bool
	// Late is set if the limit had no room, which showed only with the answer: the token was issued all the same.
	Late bool
	// Limit is the name of the limit that decided, or that has the smallest share left; empty if none applied. Remaining
	// is how many requests it has room for, and RetryAfter when it has some again, if it had none.
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
