package decision

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

// limiter is our limiter or another library, to be measured and tested on the same work: one limit for each key, and one
// request at a time.
type limiter struct {
	// Allow reports whether one more request of the key passes, and counts it. The limiter may keep the
	// string of the first request of a key. Later strings may be of a [benchKey], so their bytes change.
	Allow func(key string) bool
	// Settle finishes the work that many new keys queued. It may be nil.
	Settle func()
	// Close stops background work. It may be nil.
	Close func() error
}

// quota is the limit of every key.
type quota struct {
	Requests int64
	Window   time.Duration
}

// maker makes limiters of one kind.
type maker struct {
	Name string
	New  func(l quota, keys int) (limiter, error)
}

// inMemory returns the kinds that hold their counts in the process.
func inMemory() []maker {
	return []maker{
		{"ours", ours},
		{"go-limiter", goLimiter}, // refills a count at each interval
		{"throttled", gcra},       // generic cell rate algorithm
		{"ulule", fixedWindows},
		{"x-time-rate", tokenBuckets},
	}
}

// ours is the limiter as it runs in a server: with its clock, and attached to a syncer, so that every request also
// queues its counter. The syncer itself is another measurement's; Settle stands in for it.
func ours(l quota, keys int) (limiter, error) {
	limit := ratelimit.NewLimit("limit", l.Requests, l.Window)
	policy, err := ratelimit.Enforced(limit, limit)
	counters, now := counting.NewCounters(keys), clock.New(nil).Now
	shared := counters.Sync(counting.SyncOptions{Interval: time.Second, MaxBackoff: 5 * time.Second, Clock: now})
	return limiter{
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

func goLimiter(l quota, keys int) (limiter, error) {
	store, err := golimiter.New(&golimiter.Config{
		Tokens: uint64(l.Requests), Interval: l.Window, InitialAlloc: keys,
	})
	ctx := context.Background()
	return limiter{
		Allow: func(key string) bool {
			_, _, _, ok, err := store.Take(ctx, key)
			return ok && err == nil
		},
		Close: func() error { return store.Close(ctx) },
	}, err
}

func gcra(l quota, _ int) (limiter, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return limiter{}, err
	}
	allowed, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(l.Requests), l.Window), MaxBurst: int(l.Requests) - 1,
	})
	return limiter{Allow: func(key string) bool {
		limited, _, err := allowed.RateLimitCtx(context.Background(), key, 1)
		return !limited && err == nil
	}}, err
}

func fixedWindows(l quota, _ int) (limiter, error) {
	store := memory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "l", CleanUpInterval: time.Hour})
	windows := ulule.New(store, ulule.Rate{Period: l.Window, Limit: l.Requests})
	return limiter{Allow: func(key string) bool {
		c, err := windows.Get(context.Background(), key)
		return err == nil && !c.Reached
	}}, nil
}

// tokenBuckets is golang.org/x/time/rate in a map, which is what many servers do by hand.
func tokenBuckets(l quota, keys int) (limiter, error) {
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
	return limiter{Allow: func(key string) bool {
		mu.RLock()
		bucket := all[key]
		mu.RUnlock()
		if bucket == nil {
			bucket = add(key)
		}
		return bucket.Allow()
	}}, nil
}
