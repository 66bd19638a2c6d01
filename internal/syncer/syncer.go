package syncer

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// Syncer keeps the [ratelimit.Counters] of one process and a [Store] in step.
type Syncer struct {
	id       string
	cfg      Config
	counters *ratelimit.Counters
	store    Store
	others   Instances
	observer Observer

	began  time.Time // of the syncer; due times count from here, on the monotonic clock
	writes *lane
	reads  *lane
	final  atomic.Bool // the instance stops: only writes matter
	stats  counts
	health health

	randomMu sync.Mutex
	random   *rand.Rand

	complainMu sync.Mutex
	complained time.Time // when the log was last told of a bad document

	seqMu sync.Mutex
	seq   int64

	stop    context.CancelFunc // of the loops
	aborted context.Context    // ends when calls under way have to end
	abort   context.CancelFunc
	loops   sync.WaitGroup
}

// New returns a syncer that has not started, and attaches it to the counters.
// others may be nil: the instance is then alone.
func New(counters *ratelimit.Counters, store Store, others Instances, cfg Config) *Syncer {
	counters.Attach()
	s := &Syncer{
		id: newID(), cfg: cfg, counters: counters, store: store, others: others, observer: cfg.Observer,
		began: time.Now(), writes: newLane(), reads: newLane(),
		random: newRandom(cfg.Seed),
		stop:   func() {},
	}
	s.aborted, s.abort = context.WithCancel(context.Background())
	if s.observer == nil {
		s.observer = noObserver{}
	}
	return s
}

// ID is the name of this process among the writers of a document.
func (s *Syncer) ID() string { return s.id }

// Start looks at the store's clock and at who else is alive, once, and begins
// to work. That the store does not answer is no error: counts wait in memory. It must be called once.
func (s *Syncer) Start(ctx context.Context) {
	s.clock(ctx)
	s.beat(ctx)
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.loop(run, "plan", s.planLoop)
	s.loop(run, "write", func(ctx context.Context) { s.work(ctx, s.writes, s.flush) })
	s.loop(run, "read", func(ctx context.Context) { s.work(ctx, s.reads, s.load) })
	s.loop(run, "clock", func(ctx context.Context) { s.every(ctx, s.cfg.Beat, s.clock) })
	s.loop(run, "beat", func(ctx context.Context) { s.every(ctx, s.cfg.Beat, s.beat) })
	s.loop(run, "sweep", func(ctx context.Context) { s.every(ctx, s.cfg.SweepEvery, s.sweep) })
}

// planLoop hands the counters that became due to the lanes. The urgent ones
// wake it, the others are collected a few times per interval.
func (s *Syncer) planLoop(ctx context.Context) {
	tick := time.NewTicker(min(max(s.cfg.Interval/4, minSpacing), time.Second/2))
	defer tick.Stop()
	var due []*ratelimit.Counter
	for {
		select {
		case <-s.counters.Wake():
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		due = s.counters.Collect(due[:0])
		for _, x := range due {
			s.schedule(x, 0)
		}
	}
}

// work calls step whenever something is due in the lane.
func (s *Syncer) work(ctx context.Context, l *lane, step func(context.Context)) {
	for l.wait(ctx, s.elapsed) {
		step(ctx)
	}
}

// every calls step after the first wait, and then after what it returned.
func (s *Syncer) every(ctx context.Context, wait time.Duration, step func(context.Context) time.Duration) {
	for {
		timer := time.NewTimer(s.jitter(wait))
		select {
		case <-timer.C:
			wait = step(ctx)
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// lazyGrid is what the due times of counters that can wait are rounded up to,
// so that they go out together.
const lazyGrid = 50 * time.Millisecond

// schedule puts a counter into the lane that it needs, to be due after at
// least the delay. A counter that is busy is scheduled by whoever is at it.
func (s *Syncer) schedule(x *ratelimit.Counter, delay time.Duration) {
	v, ticket, ok := s.counters.Look(x, s.cfg.Now())
	if !ok || v.Busy {
		return
	}
	next, wait := plan(&v, s.cfg.Interval)
	if s.final.Load() {
		next, wait = planFinal(&v), 0
	}
	if next == nothing {
		if s.counters.Release(x, s.cfg.Now()) == ratelimit.NeedsNothing || s.final.Load() {
			return
		}
		next, wait = read, maxWatch // it was asked for this very moment
	}
	due := s.elapsed() + max(s.jitter(wait), delay)
	if wait > lazyGrid && !v.Urgent {
		due = (due + lazyGrid - 1) / lazyGrid * lazyGrid
	}
	l := s.reads
	if next == write {
		l = s.writes
	}
	l.add(item{due: due, added: s.elapsed(), counter: x, ticket: ticket})
}

// elapsed is the time since the syncer was made.
func (s *Syncer) elapsed() time.Duration { return time.Since(s.began) }

// jitter spreads a wait by a tenth to either side, so that instances do not
// stay in step.
func (s *Syncer) jitter(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	s.randomMu.Lock()
	defer s.randomMu.Unlock()
	return d*9/10 + time.Duration(s.random.Int64N(int64(d)/5+1))
}

// newEtag returns a number that was never used before, and is not 0.
func (s *Syncer) newEtag() int64 {
	s.randomMu.Lock()
	defer s.randomMu.Unlock()
	return s.random.Int64()>>1 + 1
}

// nextSeq grows from call to call, and is at least the time in milliseconds,
// so that writers that are long gone can be told by their sequence.
func (s *Syncer) nextSeq() int64 {
	now := s.storeTime().UnixMilli()
	s.seqMu.Lock()
	defer s.seqMu.Unlock()
	s.seq = max(s.seq+1, now)
	return s.seq
}

// storeTime is the time by the store's clock.
func (s *Syncer) storeTime() time.Time {
	return s.cfg.Now().Add(time.Duration(s.stats.offset.Load()))
}
