package syncer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer/clock"
)

// Syncer exchanges the [counting.Counters] of one process with a store.
type Syncer struct {
	cfg       Config
	clock     *clock.Clock
	counters  *counting.Counters
	sync      *counting.Sync
	store     exchange.Store
	instances Instances

	began    time.Time     // when the syncer was made; due times count from here, on the monotonic clock
	queue    *dueQueue     // of plain counters
	leases   *dueQueue     // of counters of strict limits, for which requests wait
	wake     chan struct{} // wakes the exchange loop; of capacity 1
	identity *identity
	random   *random
	alive    atomic.Pointer[map[string]bool] // IDs of the live instances; nil: not known
	beaten   atomic.Int64                    // when the latest heartbeat was stored, by elapsed; accurate to half a round trip
	stats    counts
	health   *health
	outage   outage
	unsure   sync.Mutex // held while the uncertainty of process time is passed on

	problems background.Streak // with documents

	loops   *background.Group
	aborted context.Context // ends when calls under way must end
	abort   context.CancelFunc
}

// New returns a syncer that has not started, and attaches it to the counters. instances may be nil:
// no other process then uses the store, and its clock is this machine's.
func New(counters *counting.Counters, store exchange.Store, instances Instances, cfg Config) *Syncer {
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	s := &Syncer{
		cfg: cfg, clock: cfg.Clock, counters: counters, store: store, instances: instances,
		began: time.Now(), wake: make(chan struct{}, 1), random: newRandom(cfg.Seed),
	}
	s.sync = counters.Sync(counting.SyncOptions{
		Interval: cfg.Interval, MaxBackoff: cfg.MaxBackoff, Clock: cfg.Clock.Now, Wake: s.wakeLoop,
	})
	s.queue, s.leases = newDueQueue(s.wakeLoop), newDueQueue(s.wakeLoop)
	s.health = newHealth(s.elapsed)
	s.loops = background.NewGroup(context.Background(), cfg.Log, func(string) { s.stats.panics.Add(1) }) //nolint:forbidigo // loops end with Stop
	s.identity = newIdentity()
	s.outage.sync, s.outage.log = s.sync, cfg.Log
	s.aborted, s.abort = context.WithCancel(context.Background()) //nolint:forbidigo // ends with the process, not with a call
	return s
}

// ID returns the name of this process among the writers of a document. It changes when another
// process, a copy of this one, is found to use it.
func (s *Syncer) ID() string { return s.identity.id() }

// Start sets the clock, reads once which other instances are alive, within ctx, and starts the
// loops, which run until Stop. If the store does not answer, that is no error: counts wait in
// memory. Start must be called once, before anything is counted.
func (s *Syncer) Start(ctx context.Context) {
	s.join(ctx)
	s.loops.Go("exchange", s.exchangeLoop)
	s.repeat("heartbeat", s.cfg.Beat, s.soonAtFirst(), s.beat)
	s.repeat("counter sweep", sweepEvery, s.jitter, s.sweep)
	s.repeat("health", healthEvery, s.jitter, s.watchHealth)
}

// repeat runs the step about every period.
func (s *Syncer) repeat(name string, period time.Duration, jitter func(time.Duration) time.Duration, step func(context.Context)) {
	s.loops.Repeat(background.Task{Name: name, Every: period, Jitter: jitter, Do: func(ctx context.Context) error {
		step(ctx)
		return nil
	}})
}

// soonAtFirst draws the waits of a task. The first is a sixteenth of the period, and each later one is
// twice as long, up to the period. So instances that start together soon know each other: an instance
// that expects fewer others than there are shares a busy key too late.
func (s *Syncer) soonAtFirst() func(time.Duration) time.Duration {
	part := time.Duration(16)
	return func(period time.Duration) time.Duration {
		wait := period / part
		part = max(part/2, 1)
		return s.jitter(wait)
	}
}

// sweep drops idle keys.
func (s *Syncer) sweep(context.Context) { s.counters.Sweep(s.clock.Now()) }

// elapsed returns the time since the syncer was made.
func (s *Syncer) elapsed() time.Duration { return time.Since(s.began) }
