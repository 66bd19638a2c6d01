package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/clock"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/simtime"
	"oauth-server/internal/syncer"
)

// instance is one process of the cluster.
type instance struct {
	loop     *simtime.Loop
	skew     time.Duration // of its wall clock
	counters *ratelimit.Counters
	clock    *clock.Clock
	syncer   *syncer.Syncer
	port     *port
	plain    *plain // nil: the syncer has its own rule

	seen Instance
}

func newInstance(net *network, number int, cfg *Config, r *rand.Rand) *instance {
	i := &instance{loop: net.loop, port: &port{net: net, rand: rand.New(rand.NewPCG(r.Uint64(), 1))}} //nolint:gosec // repeatable
	if cfg.Skew > 0 {
		i.skew = time.Duration(r.Int64N(2*int64(cfg.Skew)+1)) - cfg.Skew
	}
	i.clock = clock.NewOn(net.loop.Now, i.wall)
	i.counters = ratelimit.NewRepeatable(cfg.MaxKeys, r.Uint64())
	o := syncer.DefaultConfig()
	o.Interval, o.Clock, o.Scheduler = cfg.Flush.Every, i.clock, net.loop
	o.Seed = r.Uint64() | 1 // 0 would mean no seed
	ids := 0
	o.NewID = func() string {
		ids++
		return fmt.Sprintf("%08x%08x", number, ids)
	}
	i.syncer = syncer.New(i.counters, i.port, i.port, o)
	if cfg.Flush.Plain {
		i.plain = &plain{instance: i, every: cfg.Flush.Every, window: cfg.Limit.Window, of: map[ratelimit.Key]*plainKey{}}
		i.port.plain = true
		i.plain.first = time.Duration(r.Int64N(int64(cfg.Flush.Every)))
	}
	return i
}

// wall returns the time of the wall clock.
func (i *instance) wall() time.Time { return i.loop.Now().Add(i.skew) }

// start starts the instance and waits for the store.
func (i *instance) start(ctx context.Context, all background.Tasks) {
	if i.plain != nil {
		all.Go(func() { i.plain.run(ctx) })
		return
	}
	i.syncer.Start(ctx)
}

// take decides on a request.
func (i *instance) take(k ratelimit.Key, policy *ratelimit.Effective) ratelimit.Decision {
	now := i.clock.Now()
	d := i.counters.Take(now, k, policy, 1)
	if i.plain != nil {
		i.plain.requested(k)
	}
	i.seen.Requests++
	if !d.Rejected() {
		i.seen.Admitted++
	}
	return d
}

// cost returns the calls of the instance to the store.
func (i *instance) cost() Cost {
	c, st := i.port.cost, i.syncer.Stats()
	c.Conflicts, c.Unknown = st.Conflicts, st.Unknown
	return c
}

// plain exchanges every key that had a request within the last window, at each interval.
type plain struct {
	instance      *instance
	every, window time.Duration
	first         time.Duration // when the first flush begins
	keys          []ratelimit.Key
	of            map[ratelimit.Key]*plainKey
}

// plainKey is a key of a plain instance.
type plainKey struct {
	last time.Time // time of the last request
	read bool      // its document was read
}

func (p *plain) requested(k ratelimit.Key) {
	it := p.of[k]
	if it == nil {
		it = &plainKey{}
		p.of[k], p.keys = it, append(p.keys, k)
	}
	it.last = p.instance.loop.Now()
}

// run flushes until ctx ends.
func (p *plain) run(ctx context.Context) {
	due := p.instance.loop.Now().Add(p.first)
	for p.instance.sleepUntil(ctx, due) {
		p.flush(ctx)
		now := p.instance.loop.Now()
		for due = due.Add(p.every); due.Before(now); {
			due = due.Add(p.every)
		}
	}
}

func (i *instance) sleepUntil(ctx context.Context, at time.Time) bool {
	return i.loop.NewSignal().Wait(ctx, at.Sub(i.loop.Now()))
}

// flush exchanges the keys, and then again the keys with counts that were not written. A write
// fails if the document was read for the first time, or if another instance wrote in between. The
// latter can also happen after the first read.
func (p *plain) flush(ctx context.Context) {
	p.forget()
	var again []ratelimit.Key
	for _, k := range p.keys {
		if it := p.of[k]; !it.read {
			it.read = true
			again = append(again, k)
		}
	}
	p.exchange(ctx, slices.Clone(p.keys)) // requests add to the keys during the exchange
	p.exchange(ctx, append(again, p.instance.port.takeConflicts()...))
	p.exchange(ctx, p.instance.port.takeConflicts())
}

// forget drops the keys without a request within the last window.
func (p *plain) forget() {
	since, kept := p.instance.loop.Now().Add(-p.window), p.keys[:0]
	for _, k := range p.keys {
		if p.of[k].last.Before(since) {
			delete(p.of, k)
		} else {
			kept = append(kept, k)
		}
	}
	p.keys = kept
}

// exchange exchanges keys, with as many in each call as allowed.
func (p *plain) exchange(ctx context.Context, keys []ratelimit.Key) {
	for len(keys) > 0 && ctx.Err() == nil {
		n := min(len(keys), syncer.MaxBatch)
		_ = p.instance.syncer.Flush(ctx, keys[:n]...) // failed keys are exchanged at the next interval
		keys = keys[n:]
	}
}
