// Package limiters has our limiter and other libraries behind one interface, so that they are
// measured, and tested, on the same work: one limit for each key, and one request at a time.
package limiters

import "time"

// Limiter decides on the requests of keys.
type Limiter interface {
	// Allow reports whether one more request of the key passes, and counts it. The limiter may keep the
	// string of the first request of a key. Later strings may be of a [Key], so their bytes change.
	Allow(key string) bool
	// Close stops background work.
	Close() error
}

// Limit is the limit of every key.
type Limit struct {
	Requests int64
	Window   time.Duration
}

// Maker makes limiters of one kind.
type Maker struct {
	Name string
	// Ceiling is set for a map that counts, and decides nothing: what a limiter costs at least.
	Ceiling bool
	New     func(l Limit, keys int) (Limiter, error)
}

// InMemory returns the kinds that hold their counts in the process.
func InMemory() []Maker {
	return []Maker{
		{Name: "ours", New: newOurs},
		{Name: "go-limiter", New: newGoLimiter},
		{Name: "throttled", New: newThrottled},
		{Name: "ulule", New: newUlule},
		{Name: "x-time-rate", New: newTokenBuckets},
		{Name: "otter", Ceiling: true, New: newOtter},
		{Name: "xsync", Ceiling: true, New: newXsync},
	}
}
