// Package traffic is what the simulator works on: token requests in the order of their time, read from a log
// (package events) or made up (package workload).
package traffic

import (
	"net/netip"
	"time"
)

// Request is a request for a token.
type Request struct {
	At     time.Time
	Client string
	// User is whom the token is for. It is empty for client_credentials, and where a log does not say.
	User string
	// Unknown is set if the token is for a user and a gateway did not know for whom when it judged the request: only what
	// counts a client over all its users, and its source, counts it.
	Unknown bool
	// Grant is the grant_type; empty where a log does not say.
	Grant string
	// Source is the address that sent it; the zero address where a log does not say.
	Source netip.Addr
	// Scope is as it was sent. With the client, the user and the grant it says which tokens are equal.
	Scope string
	// Lifetime is how long the token that was issued lives; 0 where a log does not say.
	Lifetime time.Duration
	// Failed is set if the request was refused for another reason than a limit, such as a wrong secret: the
	// limiter would never have been asked.
	Failed bool
}

// Outcome is what became of a request.
type Outcome uint8

// The outcomes.
const (
	Admitted Outcome = iota
	Delayed          // admitted at its turn, after Answer.Wait
	Reused           // answered with the token that the client got last
	Denied
	Banned
)

// Answer is what a client gets to know.
type Answer struct {
	Outcome
	// RetryAfter is after what time the same request would be admitted if nothing else was sent; 0 if it was
	// not denied.
	RetryAfter time.Duration
	// Wait is for how long a delayed request was held.
	Wait time.Duration
}

// Refused reports whether the client got no token.
func (o Outcome) Refused() bool { return o == Denied || o == Banned }

// Source yields requests. It is not safe for concurrent use.
type Source interface {
	// Next fills in the next request, which is never before the last one, and reports whether there was one.
	// After false, Err says why the requests ended before their time.
	Next(r *Request) bool
	// Answer tells what became of a request that Next yielded; the answers come in the order of the times at which
	// they would be sent, so that of a delayed request comes after later requests. A log takes no notice; a client that reacts sends
	// its next request by it.
	Answer(r *Request, a Answer)
	Err() error
}
