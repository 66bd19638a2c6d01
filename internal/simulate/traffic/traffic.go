// Package traffic has the input of the simulator: token requests in the order of their time, read
// from a log (package events) or made up (lab/workload).
package traffic

import (
	"net/netip"
	"time"
)

// Request is a request for a token.
type Request struct {
	At     time.Time
	Client string
	// User is the user of the token. It is empty for client_credentials, and if a log does not have
	// it.
	User string
	// Unknown is set if the token is for a user that a gateway did not know when it decided the
	// request. Only limits of a client over all its users, and of the source, count such a request.
	Unknown bool
	// Grant is the grant_type. It is empty if a log does not have it.
	Grant string
	// Source is the sender's address. It is zero if a log does not have it.
	Source netip.Addr
	// Scope is the scope as sent. With the client, the user and the grant it determines which
	// tokens are equal.
	Scope string
	// Lifetime is how long the issued token lives. It is 0 if a log does not have it.
	Lifetime time.Duration
	// Failed is set if the request was refused for another reason than a limit, such as a wrong
	// secret. The server would not have called the limiter.
	Failed bool
}

// Outcome is the outcome of a request.
type Outcome uint8

// The outcomes.
const (
	Admitted Outcome = iota
	Delayed          // admitted after Answer.Wait
	Reused           // answered with the last token of the client
	Denied
	Banned
)

// Answer is the response that a client gets.
type Answer struct {
	Outcome
	// RetryAfter is the time after which the same request would be admitted if no others were sent.
	// It is 0 if the request was not denied.
	RetryAfter time.Duration
	// Wait is how long a delayed request was held.
	Wait time.Duration
}

// Refused reports whether the client got no token.
func (o Outcome) Refused() bool { return o == Denied || o == Banned }

// Source yields requests. It is not safe for concurrent use.
type Source interface {
	// Next fills in the next request, which is never before the last one, and reports whether there
	// was one. After false, Err returns an error if the requests ended early.
	Next(r *Request) bool
	// Answer reports the outcome of a request that Next yielded. Answers come in the order of the
	// times at which they would be sent, so the answer of a delayed request comes after later
	// requests. A log ignores answers. A reacting client chooses its next request by them.
	Answer(r *Request, a Answer)
	Err() error
}
