// Package algorithm implements the usual rate-limiting algorithms. It runs them on the same traffic
// and compares each with an exact log.
//
// The server's own algorithms (fixed, weighted, sliding, strict) run the code of internal/ratelimit.
// The others (exact, token-bucket, leaky-queue) are short and implemented here. GCRA and a leaky bucket as a meter admit
// the same requests as a token bucket.
// All of them take times in whole milliseconds and calculate in integers, which makes decisions
// reproducible.
//
// # Wrong decisions
//
// [Run] counts wrong decisions by two definitions.
//
// The first uses the algorithm's own log: an exact log of the requests that the algorithm itself has
// admitted. With a limit of N in a window W, a request at t should be admitted if fewer than N were
// admitted in (t-W, t]. A false admit is a request admitted although there were N or more. A false
// denial is a request denied although there were fewer. Each decision is checked on its own: after
// one request too many, the later decisions do not count as wrong too.
//
// The second uses the count of all requests, admitted or not. It compares the algorithm's estimate
// for the last window with the exact count. A request is wrongly allowed if the estimate is within
// the limit and the count is over it, and wrongly limited in the opposite case. The rate error is the
// difference between the estimate and the count, as a fraction of the count. Cloudflare published
// these figures (https://blog.cloudflare.com/counting-things-a-lot-of-different-things/). They do not
// exist for algorithms that do not estimate the window, such as the token bucket.
package algorithm

import (
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// Key is what requests are counted by.
type Key struct {
	ratelimit.Key
	Number int // of the key, from 0 on
}

// Algorithm decides whether requests are admitted. It is not safe for concurrent use.
type Algorithm interface {
	// Admit decides on one request of the key, and counts it if it is admitted. The time ms is in
	// milliseconds since the epoch, and never decreases from call to call.
	Admit(k Key, ms int64) traffic.Answer
}

// Estimator counts all requests and estimates how many were in the last window.
type Estimator interface {
	// Estimate returns the estimate for the key at time ms. It does not include the request that is
	// being decided.
	Estimate(k Key, ms int64) float64
	// Count counts one request.
	Count(k Key, ms int64)
}

// Limit is the limit that an algorithm enforces. The token bucket and the leaky queue admit as many requests
// at once.
type Limit struct {
	Requests int64
	Window   time.Duration // whole milliseconds
}

// The names of the algorithms. [SlidingFrames] returns the name of sliding with several frames.
const (
	Unlimited   = "unlimited" // admits every request, to show the traffic without a limit
	Exact       = "exact"     // the log of the last window
	Fixed       = "fixed"
	Weighted    = "weighted"
	Sliding     = "sliding" // one frame in a window
	Strict      = "strict"
	TokenBucket = "token-bucket"
	LeakyQueue  = "leaky-queue" // delays, as nginx does
)

// SlidingFrames returns the name of sliding with n frames in a window.
func SlidingFrames(n int) string {
	if n == 1 {
		return Sliding
	}
	return Sliding + "-" + strconv.Itoa(n)
}

// Names returns the algorithms that are compared. [New] also accepts [SlidingFrames] with any number of
// frames.
func Names() []string {
	return []string{
		Unlimited, Exact, Fixed, Weighted, Sliding, SlidingFrames(2), SlidingFrames(6), SlidingFrames(60), Strict, TokenBucket, LeakyQueue,
	}
}

// New returns the algorithm with the given name. It panics for an unknown name or an invalid limit.
func New(name string, l Limit) Algorithm {
	switch name {
	case Unlimited:
		return unlimited{}
	case Exact:
		return &exact{limit: l}
	case TokenBucket:
		return &tokenBucket{limit: l}
	case LeakyQueue:
		return &leakyQueue{limit: l}
	default:
		return newOwn(name, l)
	}
}

// NewEstimator returns the estimator of the algorithm with the given name, or nil if the algorithm
// does not estimate the window.
func NewEstimator(name string, l Limit) Estimator {
	if _, estimates := New(name, l).(Estimator); !estimates {
		return nil
	}
	return newOwn(name, Limit{Requests: ratelimit.MaxRequests, Window: l.Window})
}

// unlimited is [Unlimited].
type unlimited struct{}

// Admit implements [Algorithm].
func (unlimited) Admit(Key, int64) traffic.Answer { return traffic.Answer{Outcome: traffic.Admitted} }

// denied is the answer to a request that would be admitted ms milliseconds later.
func denied(ms int64) traffic.Answer {
	return traffic.Answer{Outcome: traffic.Denied, RetryAfter: time.Duration(ms) * time.Millisecond}
}

// of returns the state of key number i. It extends the slice if it is too short.
func of[T any](all *[]T, i int) *T {
	if n := i + 1 - len(*all); n > 0 {
		*all = append(*all, make([]T, n)...)
	}
	return &(*all)[i]
}

// ceil returns a/b, rounded up. Neither may be negative.
func ceil(a, b int64) int64 {
	if a%b > 0 {
		return a/b + 1
	}
	return a / b
}
