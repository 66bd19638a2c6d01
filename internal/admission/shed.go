package admission

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// ShedError is a request that was refused because the server is overloaded. The answer is 503 with Retry-After. The
// request consumed nothing, so what the client presented stays valid.
type ShedError struct {
	// RetryAfter is in whole seconds.
	RetryAfter time.Duration
	// Short is what there was not enough of: the processor or the store.
	Short Resource
}

// Resource is what an overloaded server has not enough of.
type Resource string

// The resources.
const (
	Processor Resource = "processor"
	Store     Resource = "store"
)

// Error implements error.
func (e *ShedError) Error() string {
	return fmt.Sprintf("admission: refused for want of the %s; retry after %v", e.Short, e.RetryAfter)
}

// The shortest and the longest time after which a refused caller is asked to come again.
const (
	shortestRetry = time.Second
	longestRetry  = 30 * time.Second
)

// RetryAfter returns when a refused caller is asked to come again, in whole seconds: a quarter of the time for which
// the overload has lasted, and up to three times that by chance, so that those refused together do not return
// together. It is at least a second and at most half a minute.
func RetryAfter(overloaded time.Duration) time.Duration {
	base := min(max(overloaded/4, shortestRetry), longestRetry/3)
	wait := base + time.Duration(rand.Int64N(2*int64(base)+1)) //nolint:gosec // G404: spreads load, protects nothing
	return wait.Round(time.Second)
}
