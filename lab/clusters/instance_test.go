package clusters

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer"
	"oauth-server/internal/syncer/clock"
)

// instance is one process of the cluster.
type instance struct {
	skew     atomic.Int64 // of its wall clock
	counters *counting.Counters
	clock    *clock.Clock
	syncer   *syncer.Syncer
	port     *port
	plain    *plain // nil: the syncer has its own rule
}

func newInstance(db *database, cfg *config, r *rand.Rand) *instance {
	i := &instance{port: &port{db: db, rand: rand.New(rand.NewPCG(r.Uint64(), 1))}, counters: counting.NewCounters(0)}
	if cfg.skew > 0 {
		i.skew.Store(r.Int64N(2*int64(cfg.skew)+1) - int64(cfg.skew))
	}
	i.clock = clock.New(i.wall)
	o := syncer.DefaultConfig()
	o.Interval, o.Clock, o.Seed = cfg.flush.every, i.clock, r.Uint64()|1 // 0 would mean no seed
	i.syncer = syncer.New(i.counters, i.port, i.port, o)
	if cfg.flush.plain {
		i.plain = &plain{
			instance: i, every: cfg.flush.every, window: cfg.limit.Window, first: time.Duration(r.Int64N(int64(cfg.flush.every))),
			used: map[ratelimit.Key]time.Time{}, read: map[ratelimit.Key]bool{},
		}
	}
	return i
}

// wall returns the time of the wall clock.
func (i *instance) wall() time.Time { return time.Now().Add(time.Duration(i.skew.Load())) }

// start starts the instance, which runs until ctx ends.
func (i *instance) start(ctx context.Context) {
	if i.plain != nil {
		go i.plain.run(ctx)
		return
	}
	go i.syncer.Start(context.WithoutCancel(ctx)) // all instances start at the same time
}

// take decides on a request.
func (i *instance) take(k ratelimit.Key, policy *ratelimit.Effective) ratelimit.Decision {
	if i.plain != nil {
		i.plain.requested(k)
	}
	return i.counters.Take(i.clock.Now(), k, policy, 1)
}

// cost returns the calls of the instance to the store.
func (i *instance) cost() cost {
	c, st := i.port.costs(), i.syncer.Stats()
	c.conflicts, c.unknown = st.Conflicts, st.Unknown
	return c
}

// plain exchanges every key that had a request within the last window, at each interval. Its process time is the
// instance's wall clock.
type plain struct {
	instance      *instance
	every, window time.Duration
	first         time.Duration // when the first flush begins

	mu   sync.Mutex
	used map[ratelimit.Key]time.Time // time of the last request
	read map[ratelimit.Key]bool      // its document was read
}

func (p *plain) requested(k ratelimit.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[k] = time.Now()
}

// run flushes until ctx ends.
func (p *plain) run(ctx context.Context) {
	timer := time.NewTimer(p.first)
	defer timer.Stop()
	for due := time.Now().Add(p.first); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		p.flush(ctx)
		for due = due.Add(p.every); time.Until(due) < 0; {
			due = due.Add(p.every)
		}
		timer.Reset(time.Until(due))
	}
}

// flush exchanges the keys, and then again the keys with counts that were not written. A write fails if the document
// was read for the first time, or if another instance wrote in between. The latter can also happen after the first
// read.
func (p *plain) flush(ctx context.Context) {
	keys, again := p.keys()
	p.exchange(ctx, keys)
	p.exchange(ctx, append(again, p.instance.port.takeConflicts()...))
	p.exchange(ctx, p.instance.port.takeConflicts())
}

// keys returns the keys with a request within the last window, and those of them that were never read. It drops the
// others.
func (p *plain) keys() (keys, unread []ratelimit.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := time.Now().Add(-p.window)
	for k, used := range p.used {
		if used.Before(since) {
			delete(p.used, k)
			delete(p.read, k)
			continue
		}
		keys = append(keys, k)
		if !p.read[k] {
			p.read[k], unread = true, append(unread, k)
		}
	}
	return keys, unread
}

// exchange exchanges keys, with as many in each call as allowed.
func (p *plain) exchange(ctx context.Context, keys []ratelimit.Key) {
	for len(keys) > 0 && ctx.Err() == nil {
		n := min(len(keys), exchange.MaxBatch)
		_ = p.instance.syncer.Flush(ctx, keys[:n]...) // failed keys are exchanged at the next interval
		keys = keys[n:]
	}
}
