package syncer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/clock"
	"oauth-server/internal/ratelimit"
)

// Syncer keeps the [ratelimit.Counters] of one process and a [Store] in step.
type Syncer struct {
	cfg      Config
	clock    *clock.Clock
	counters *ratelimit.Counters
	sync     *ratelimit.Sync
	store    Store
	others   Instances

	began    time.Time // of the syncer; due times count from here, on the monotonic clock
	agenda   *agenda
	identity *identity
	random   *random
	alive    atomic.Pointer[map[string]bool] // live instances by ID; nil: not known
	stats    counts
	health   *health
	outage   outage

	complaints limiter // about documents that make no sense

	stop    context.CancelFunc // of the loops
	aborted context.Context    // ends when calls under way have to end
	abort   context.CancelFunc
	loops   sync.WaitGroup
}

// New returns a syncer that has not started, and attaches it to the counters.
// others may be nil: the instance is then alone.
func New(counters *ratelimit.Counters, store Store, others Instances, cfg Config) *Syncer {
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	s := &Syncer{
		cfg: cfg, clock: cfg.Clock, counters: counters, store: store, others: others,
		sync:  counters.Sync(ratelimit.SyncOptions{Interval: cfg.Interval, MaxBackoff: cfg.MaxBackoff}),
		began: time.Now(), agenda: newAgenda(), health: newHealth(),
		random: newRandom(cfg.Seed), stop: func() {},
	}
	s.identity = newIdentity(s.random.bits)
	s.outage.sync, s.outage.log = s.sync, cfg.Log
	s.aborted, s.abort = context.WithCancel(context.Background())
	return s
}

// ID is the name of this process among the writers of a document. It changes if
// another process turns out to use it: a copy of this one.
func (s *Syncer) ID() string { return s.identity.id() }

// Start sets the clock and looks who else is alive, once, and begins to work.
// That the store does not answer is no error: counts wait in memory. It must be
// called once, before anything is counted.
func (s *Syncer) Start(ctx context.Context) {
	s.meet(ctx)
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.loop(run, "exchange", s.exchangeLoop)
	s.loop(run, "beat", func(ctx context.Context) { s.every(ctx, s.cfg.Beat, s.beat) })
	s.loop(run, "sweep", func(ctx context.Context) { s.every(ctx, s.cfg.SweepEvery, s.sweep) })
	s.loop(run, "health", func(ctx context.Context) { s.every(ctx, healthEvery, s.watchHealth) })
}

// every calls step again and again, with the wait, jittered, before each.
func (s *Syncer) every(ctx context.Context, wait time.Duration, step func(context.Context)) {
	for {
		timer := time.NewTimer(s.jitter(wait))
		select {
		case <-timer.C:
			step(ctx)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// sweep drops idle counters.
func (s *Syncer) sweep(context.Context) { s.counters.Sweep(s.clock.Now()) }

// elapsed is the time since the syncer was made.
func (s *Syncer) elapsed() time.Duration { return time.Since(s.began) }
