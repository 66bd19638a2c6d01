// Package limiters has our limiter and other libraries behind one interface, so that they are
// measured, and tested, on the same work: one limit for each key, and one request at a time.
package limiters

import (
	"context"
	"sync"
	"time"

	golimiter "github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/syncer/clock"
)

// Limiter decides on the requests of keys.
type Limiter struct {
	// Allow reports whether one more request of the key passes, and counts it. The limiter may keep the
	// string of the first request of a key. Later strings may be of a [Key], so their bytes change.
	Allow func(key string) bool
	// Settle finishes the work that many new keys queued. It may be nil.
	Settle func()
	// Close stops background work. It may be nil.
	Close func() error
}

// Limit is the limit of every key.
type Limit struct {
	Requests int64
	Window   time.Duration
}

// Maker makes limiters of one kind.
type Maker struct {
	Name string
	New  func(l Limit, keys int) (Limiter, error)
}

// InMemory returns the kinds that hold their counts in the process.
func InMemory() []Maker {
	return []Maker{
		{"ours", ours},
		{"go-limiter", goLimiter}, // refills a count at each interval
		{"throttled", gcra},       // generic cell rate algorithm
		{"ulule", fixedWindows},
		{"x-time-rate", tokenBuckets},
	}
}

// ours is the limiter as it runs in a server: with its clock, and attached to a syncer, so that every request also
// queues its counter. The syncer itself is another measurement's; Settle stands in for it.
func ours(l Limit, keys int) (Limiter, error) {
	limit := ratelimit.NewLimit("limit", l.Requests, l.Window)
	policy, err := ratelimit.Enforced(limit, limit)
	counters, now := counting.NewCounters(keys), clock.New(nil).Now
	shared := counters.Sync(counting.SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second, Clock: now})
	return Limiter{
		Allow: func(key string) bool {
			k := ratelimit.Key{ClientID: key[:clientSize], Username: key[clientSize+1:]}
			d := counters.Take(now(), k, policy, 1)
			return !d.Rejected()
		},
		Settle: func() { settle(shared, now()) },
	}, err
}

// settle exchanges all due counters, like a syncer with a store that applies writes at once.
func settle(s *counting.Sync, now time.Time) {
	seq := int64(1)
	for _, p := range s.Due(now, nil) {
		for {
			task, ok := s.Begin(now, p.Ticket, seq)
			if !ok {
				break
			}
			seq++
			done := s.Finish(now, &task, counting.Result{Read: task.Read, Status: counting.Applied, NewEtag: 1})
			if task.Seq != 0 || !done.Planned {
				break
			}
			p = done.Next
		}
	}
}

func goLimiter(l Limit, keys int) (Limiter, error) {
	store, err := golimiter.New(&golimiter.Config{
		Tokens: uint64(l.Requests), Interval: l.Window, InitialAlloc: keys, //nolint:gosec // G115: above 0
	})
	ctx := context.Background()
	return Limiter{
		Allow: func(key string) bool {
			_, _, _, ok, err := store.Take(ctx, key)
			return ok && err == nil
		},
		Close: func() error { return store.Close(ctx) },
	}, err
}

func gcra(l Limit, _ int) (Limiter, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return Limiter{}, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(l.Requests), l.Window), MaxBurst: int(l.Requests) - 1,
	})
	return Limiter{Allow: func(key string) bool {
		limited, _, err := limiter.RateLimitCtx(context.Background(), key, 1)
		return !limited && err == nil
	}}, err
}

func fixedWindows(l Limit, _ int) (Limiter, error) {
	store := memory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "l", CleanUpInterval: time.Hour})
	limiter := ulule.New(store, ulule.Rate{Period: l.Window, Limit: l.Requests})
	return Limiter{Allow: func(key string) bool {
		c, err := limiter.Get(context.Background(), key)
		return err == nil && !c.Reached
	}}, nil
}

// tokenBuckets is golang.org/x/time/rate in a map, which is what many servers do by hand.
func tokenBuckets(l Limit, keys int) (Limiter, error) {
	var mu sync.RWMutex
	all := make(map[string]*rate.Limiter, keys)
	add := func(key string) *rate.Limiter {
		mu.Lock()
		defer mu.Unlock()
		if all[key] == nil {
			all[key] = rate.NewLimiter(rate.Limit(float64(l.Requests)/l.Window.Seconds()), int(l.Requests))
		}
		return all[key]
	}
	return Limiter{Allow: func(key string) bool {
		mu.RLock()
		bucket := all[key]
		mu.RUnlock()
		if bucket == nil {
			bucket = add(key)
		}
		return bucket.Allow()
	}}, nil
}
