package overload

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// ShedError is the error of a request that was refused because the server is overloaded. The answer
// is 503 with Retry-After. The request used up nothing, so the client's credentials and tokens stay
// valid.
type ShedError struct {
	// RetryAfter is in whole seconds.
	RetryAfter time.Duration
	// Short is the resource that was short: the processor or the store.
	Short Resource
}

// Resource is a resource that is short under overload.
type Resource string

// The resources.
const (
	Processor Resource = "processor"
	Store     Resource = "store"
)

// Error implements error.
func (e *ShedError) Error() string {
	return fmt.Sprintf("overload: %s overloaded; retry after %v", e.Short, e.RetryAfter)
}

// The minimum and the maximum retry time.
const (
	shortestRetry = time.Second
	longestRetry  = 30 * time.Second
)

// RetryAfter returns the retry time for a refused caller, in whole seconds: a quarter of the
// duration of the overload, multiplied by a random factor from 1 to 3, so callers that were refused
// together do not return together. It is between a second and half a minute.
func RetryAfter(overloaded time.Duration) time.Duration {
	base := min(max(overloaded/4, shortestRetry), longestRetry/3)
	wait := base + time.Duration(rand.Int64N(2*int64(base)+1)) //nolint:gosec // G404: spreads load, protects nothing
	return wait.Round(time.Second)
}
