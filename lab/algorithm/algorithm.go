package algorithm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// Limit is the limit that an algorithm enforces. The token bucket, the leaky buckets and GCRA admit as many requests at
// once.
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
	LeakyBucket = "leaky-bucket" // as a meter: denies requests that do not fit
	LeakyQueue  = "leaky-queue"  // as a queue: delays, as nginx does
	GCRA        = "gcra"         // the generic cell rate algorithm
)

// SlidingFrames returns the name of sliding with n frames in a window.
func SlidingFrames(n int) string {
	if n == 1 {
		return Sliding
	}
	return Sliding + "-" + strconv.Itoa(n)
}

// Names returns the algorithms that are compared by default. [New] also accepts [SlidingFrames] with
// any number of frames.
func Names() []string {
	return []string{
		Unlimited, Exact, Fixed, Weighted, Sliding, SlidingFrames(2), SlidingFrames(4), SlidingFrames(6), SlidingFrames(60), Strict,
		TokenBucket, LeakyBucket, LeakyQueue, GCRA,
	}
}

// Fitting returns the Names without the algorithms that cannot divide the window of the limit into
// their number of frames. The limit must be valid.
func Fitting(l Limit) []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		_, _, err := ownLimit(name, l)
		return err != nil
	})
}

// New returns the algorithm with the given name. It returns an error for an unknown name or an invalid
// limit.
func New(name string, l Limit) (Algorithm, error) {
	own, is, err := ownLimit(name, l)
	switch {
	case err != nil:
		return nil, err
	case is:
		return newOwn(own)
	}
	switch name {
	case Unlimited:
		return unlimited{}, nil
	case Exact:
		return &exact{limit: l}, nil
	case TokenBucket:
		return &tokenBucket{limit: l}, nil
	case LeakyBucket:
		return &leakyBucket{limit: l}, nil
	case LeakyQueue:
		return &leakyBucket{limit: l, queue: true}, nil
	default:
		return &gcra{limit: l}, nil
	}
}

// NewEstimator returns the estimator of the algorithm with the given name, or nil if the algorithm
// does not estimate the window.
func NewEstimator(name string, l Limit) (Estimator, error) {
	own, is, err := ownLimit(name, l)
	if err != nil || !is {
		return nil, err
	}
	own.Requests = ratelimit.MaxRequests
	return newOwn(own)
}

// ownLimit returns the internal/ratelimit limit for an algorithm, and whether that package implements
// the algorithm. It returns an error if the name is unknown or the number of frames is invalid.
func ownLimit(name string, l Limit) (own ratelimit.Limit, is bool, err error) {
	own = ratelimit.NewLimit("limit", l.Requests, l.Window)
	if err := own.Validate(); err != nil {
		return own, false, err
	}
	base, frames, several := strings.Cut(name, "-")
	switch {
	case name == Sliding:
	case name == Fixed:
		own.Algorithm = ratelimit.Fixed
	case name == Weighted:
		own.Algorithm = ratelimit.Weighted
	case name == Strict:
		own.MakeStrict()
	case several && base == Sliding:
		if own.Frames, err = strconv.Atoi(frames); err != nil {
			return own, false, fmt.Errorf("algorithm %q: %q is not a number of frames", name, frames)
		}
		if err := own.Validate(); err != nil {
			return own, false, fmt.Errorf("algorithm %q: %w", name, err)
		}
	case slices.Contains(Names(), name):
		return own, false, nil
	default:
		return own, false, fmt.Errorf("there is no algorithm %q; there are %s, and sliding-N with any number of frames", name, strings.Join(Names(), ", "))
	}
	return own, true, nil
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
