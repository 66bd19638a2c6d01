// Package limiters has our limiter and other libraries behind one interface, so that they are
// measured, and tested, on the same work: one limit for each key, and one request at a time.
package limiters

import "time"

// Limiter decides on the requests of keys.
type Limiter interface {
	// Allow reports whether one more request of the key passes, and counts it. The first request of a key
	// comes with a string that may be kept; later ones may come with a [Key], whose memory changes.
	Allow(key string) bool
	// Close ends what runs in the background.
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
