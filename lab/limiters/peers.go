package limiters

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/puzpuzpuz/xsync/v4"
	golimiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

type goLimiter struct{ store golimiter.Store }

func newGoLimiter(l Limit, keys int) (Limiter, error) {
	store, err := memorystore.New(&memorystore.Config{
		Tokens: uint64(l.Requests), Interval: l.Window, InitialAlloc: keys, //nolint:gosec // G115: above 0
	})
	return &goLimiter{store}, err
}

// Allow implements [Limiter].
func (g *goLimiter) Allow(key string) bool {
	_, _, _, ok, err := g.store.Take(context.Background(), key)
	return ok && err == nil
}

// Close implements [Limiter].
func (g *goLimiter) Close() error { return g.store.Close(context.Background()) }

type gcra struct{ limiter *throttled.GCRARateLimiterCtx }

func newThrottled(l Limit, _ int) (Limiter, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(int(l.Requests), l.Window), MaxBurst: int(l.Requests) - 1,
	})
	return &gcra{limiter}, err
}

// Allow implements [Limiter].
func (g *gcra) Allow(key string) bool {
	limited, _, err := g.limiter.RateLimitCtx(context.Background(), key, 1)
	return !limited && err == nil
}

// Close implements [Limiter].
func (*gcra) Close() error { return nil }

type fixedWindows struct{ limiter *ulule.Limiter }

func newUlule(l Limit, _ int) (Limiter, error) {
	store := memory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "l", CleanUpInterval: time.Hour})
	return &fixedWindows{ulule.New(store, ulule.Rate{Period: l.Window, Limit: l.Requests})}, nil
}

// Allow implements [Limiter].
func (f *fixedWindows) Allow(key string) bool {
	c, err := f.limiter.Get(context.Background(), key)
	return err == nil && !c.Reached
}

// Close implements [Limiter].
func (*fixedWindows) Close() error { return nil }

// tokenBuckets is golang.org/x/time/rate in a map, which is what many servers do by hand.
type tokenBuckets struct {
	limit Limit
	mu    sync.RWMutex
	all   map[string]*rate.Limiter
}

func newTokenBuckets(l Limit, keys int) (Limiter, error) {
	return &tokenBuckets{limit: l, all: make(map[string]*rate.Limiter, keys)}, nil
}

// Allow implements [Limiter].
func (t *tokenBuckets) Allow(key string) bool {
	t.mu.RLock()
	bucket := t.all[key]
	t.mu.RUnlock()
	if bucket == nil {
		bucket = t.add(key)
	}
	return bucket.Allow()
}

func (t *tokenBuckets) add(key string) *rate.Limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	bucket := t.all[key]
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Limit(float64(t.limit.Requests)/t.limit.Window.Seconds()), int(t.limit.Requests))
		t.all[key] = bucket
	}
	return bucket
}

// Close implements [Limiter].
func (*tokenBuckets) Close() error { return nil }

// otterCounts is a cache of counts.
type otterCounts struct {
	limit int64
	cache *otter.Cache[string, *atomic.Int64]
}

func newOtter(l Limit, keys int) (Limiter, error) {
	cache, err := otter.New(&otter.Options[string, *atomic.Int64]{MaximumSize: 2 * keys, InitialCapacity: keys})
	return &otterCounts{l.Requests, cache}, err
}

// Allow implements [Limiter].
func (o *otterCounts) Allow(key string) bool {
	count, ok := o.cache.GetIfPresent(key)
	if !ok {
		count, _ = o.cache.SetIfAbsent(key, new(atomic.Int64))
	}
	return count.Add(1) <= o.limit
}

// Close implements [Limiter].
func (*otterCounts) Close() error { return nil }

// xsyncCounts is a concurrent map of counts.
type xsyncCounts struct {
	limit  int64
	counts *xsync.Map[string, *atomic.Int64]
}

func newXsync(l Limit, keys int) (Limiter, error) {
	return &xsyncCounts{l.Requests, xsync.NewMap[string, *atomic.Int64](xsync.WithPresize(keys))}, nil
}

// Allow implements [Limiter].
func (x *xsyncCounts) Allow(key string) bool {
	count, ok := x.counts.Load(key)
	if !ok {
		count, _ = x.counts.LoadOrStore(key, new(atomic.Int64))
	}
	return count.Add(1) <= x.limit
}

// Close implements [Limiter].
func (*xsyncCounts) Close() error { return nil }
