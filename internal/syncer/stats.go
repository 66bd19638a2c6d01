package syncer

import (
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// Stats is what a syncer has done since it began, and how it stands now.
type Stats struct {
	Calls   map[Op]int64 // to the store
	Failed  map[Op]int64 // of them
	Writes  int64        // of counters, tried
	Applied int64        // of them
	Blind   int64        // of those applied, not conditional on what was known
	// Conflicts, Unknown and Rejected are the writes that were not applied, may have been,
	// and never will be.
	Conflicts, Unknown, Rejected int64
	Reads                        int64 // of documents
	Foreign                      int64 // documents that made no sense
	Drift                        int64 // documents that held less than was known to be in them
	Panics                       int64

	WritesWaiting, ReadsWaiting int           // items in the lanes; void ones included
	Due                         int           // of the writes, those that should be under way
	Late                        time.Duration // how long the first of those has been due
	Age                         time.Duration // of the oldest g of an active key, lately
	Batch                       int           // how much one call may have now
	Offset                      time.Duration // by which the store's clock is ahead of ours
	Instances                   int           // alive, this one included; 0 if not known
	Degraded                    bool          // the store does not answer
	DegradedFor                 time.Duration
}

// counts are the totals behind [Stats].
type counts struct {
	mu            sync.Mutex
	calls, failed map[Op]int64

	writes, applied, blind, conflicts, unknown, rejected atomic.Int64
	reads, foreign, drift, panics                        atomic.Int64
	offset, instances                                    atomic.Int64

	age peak
}

// peak is the highest of what was noted in the last one to two periods.
type peak struct {
	mu            sync.Mutex
	period        time.Duration // since when
	now, previous time.Duration
}

// peakPeriod is about as long as scrapers leave between two looks.
const peakPeriod = 15 * time.Second

func (p *peak) note(elapsed, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(elapsed)
	p.now = max(p.now, d)
}

func (p *peak) turn(elapsed time.Duration) {
	switch since := elapsed - p.period; {
	case since >= 2*peakPeriod:
		p.now, p.previous, p.period = 0, 0, elapsed
	case since >= peakPeriod:
		p.now, p.previous, p.period = 0, p.now, elapsed
	}
}

func (p *peak) value(elapsed time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(elapsed)
	return max(p.now, p.previous)
}

func (c *counts) call(op Op, n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls, c.failed = map[Op]int64{}, map[Op]int64{}
	}
	c.calls[op]++
	if err != nil {
		c.failed[op]++
	}
	switch op {
	case OpApply:
		c.writes.Add(int64(n))
	case OpLoad:
		c.reads.Add(int64(n))
	default:
	}
}

func (c *counts) outcome(s Status, blind bool) {
	switch s {
	case Applied:
		c.applied.Add(1)
		if blind {
			c.blind.Add(1)
		}
	case Conflict:
		c.conflicts.Add(1)
	case Rejected:
		c.rejected.Add(1)
	default:
		c.unknown.Add(1)
	}
}

func (c *counts) perOp() (calls, failed map[Op]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls, failed = map[Op]int64{}, map[Op]int64{}
	for _, op := range []Op{OpApply, OpLoad, OpClock, OpBeat} {
		calls[op], failed[op] = c.calls[op], c.failed[op]
	}
	return calls, failed
}

// Stats returns the totals and the state.
func (s *Syncer) Stats() Stats {
	now := s.elapsed()
	writes, due, late := s.writes.waiting(now)
	reads, _, _ := s.reads.waiting(now)
	calls, failed := s.stats.perOp()
	c := &s.stats
	down := s.health.down()
	return Stats{
		Calls: calls, Failed: failed,
		Writes: c.writes.Load(), Applied: c.applied.Load(), Blind: c.blind.Load(),
		Conflicts: c.conflicts.Load(), Unknown: c.unknown.Load(), Rejected: c.rejected.Load(),
		Reads: c.reads.Load(), Foreign: c.foreign.Load(), Drift: c.drift.Load(), Panics: c.panics.Load(),
		WritesWaiting: writes, ReadsWaiting: reads, Due: due, Late: late, Age: max(s.stats.age.value(now), down), Batch: s.writes.size(),
		Offset: time.Duration(c.offset.Load()), Instances: int(c.instances.Load()),
		Degraded: down > 0, DegradedFor: down,
	}
}

// Degraded returns nil if the store answers; otherwise the error with which it
// last failed. Decisions go on either way.
func (s *Syncer) Degraded() error {
	if s.health.down() == 0 {
		return nil
	}
	return s.health.last()
}

// health knows since when the store has failed.
type health struct {
	mu    sync.Mutex
	since time.Time // zero: it answers
	fails int
	err   error
}

// failsToDegrade is how many calls in a row must fail: one may be bad luck.
const failsToDegrade = 2

func (h *health) note(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.fails, h.since, h.err = 0, time.Time{}, nil
		return
	}
	if h.fails == 0 {
		h.since = time.Now()
	}
	h.fails++
	h.err = err
}

// down is for how long the store has not answered; 0 if it does.
func (h *health) down() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails < failsToDegrade {
		return 0
	}
	return max(time.Since(h.since), 1)
}

func (h *health) last() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// complainEvery limits how often the log hears of bad documents.
const complainEvery = time.Minute

// complain reports a counter's document, at most once a minute in all: the
// totals count every one. Names of users stay out of the log.
func (s *Syncer) complain(what string, id ratelimit.CounterID, err error) {
	s.complainMu.Lock()
	again := !s.complained.IsZero() && time.Since(s.complained) < complainEvery
	if !again {
		s.complained = time.Now()
	}
	s.complainMu.Unlock()
	if !again {
		s.cfg.Log.Error("counter document", "problem", what, "client_id", id.ClientID, "limit", id.Limit, "error", err)
	}
}
