package syncer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/clock"
	"oauth-server/internal/ratelimit"
)

// Stats is what a syncer has done since it began, and how it stands now.
type Stats struct {
	Applied int64 // writes
	// Fallback are the applied writes that did not depend on the version.
	Fallback int64
	// Conflicts, Unknown and Rejected are the writes that were not applied, may have been,
	// and never will be.
	Conflicts, Unknown, Rejected int64
	Foreign                      int64 // documents that made no sense
	Drift                        int64 // documents without counts that this instance had written
	Clones                       int64 // times that another process wrote under the ID of this one
	Panics                       int64

	Waiting     int           // items on the agenda; void ones included
	Due         int           // of those, that should be under way
	Late        time.Duration // how long the first of those has been due
	Age         time.Duration // of the oldest g of an active key, lately
	Unconfirmed time.Duration // age of the oldest write that is not known to be applied
	Instances   int           // alive, this one included; 0 if not known
	Stalled     bool          // limits are decided by their OnOutage
	Degraded    bool          // the store fails
	DegradedFor time.Duration
	Clock       clock.State
}

// counts are the totals behind [Stats].
type counts struct {
	applied, fallback, conflicts, unknown, rejected       atomic.Int64
	foreign, drift, clones, panics, instances, degradedAt atomic.Int64
	degraded                                              atomic.Bool
	clock                                                 atomic.Pointer[clock.State]

	age peak
}

// live is how many instances are alive as last seen, at least this one.
func (c *counts) live() int { return max(int(c.instances.Load()), 1) }

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
	p.rotate(elapsed)
	p.now = max(p.now, d)
}

func (p *peak) rotate(elapsed time.Duration) {
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
	p.rotate(elapsed)
	return max(p.now, p.previous)
}

func (c *counts) outcome(s Status, versioned bool) {
	switch s {
	case Applied:
		c.applied.Add(1)
		if !versioned {
			c.fallback.Add(1)
		}
	case Conflict:
		c.conflicts.Add(1)
	case Rejected:
		c.rejected.Add(1)
	default:
		c.unknown.Add(1)
	}
}

// What is wrong where no call fails as a whole.
var (
	errUnconfirmed = errors.New("syncer: writes are not confirmed")
	errUnread      = errors.New("syncer: the store read no document, and returned no error")
)

// Stats returns the totals and the state.
func (s *Syncer) Stats() Stats {
	now := s.elapsed()
	waiting, due, late := s.queue.waiting(now)
	c := &s.stats
	st := Stats{
		Applied: c.applied.Load(), Fallback: c.fallback.Load(),
		Conflicts: c.conflicts.Load(), Unknown: c.unknown.Load(), Rejected: c.rejected.Load(),
		Foreign: c.foreign.Load(), Drift: c.drift.Load(), Clones: c.clones.Load(), Panics: c.panics.Load(),
		Waiting: waiting, Due: due, Late: late,
		Unconfirmed: s.health.unconfirmedFor(), Instances: int(c.instances.Load()), Stalled: s.outage.active(),
	}
	st.DegradedFor, _ = s.health.degraded()
	st.Degraded = st.DegradedFor > 0
	st.Age = max(c.age.value(now), st.DegradedFor)
	if state := c.clock.Load(); state != nil {
		st.Clock = *state
	}
	return st
}

// complainEvery limits how often bad documents are logged.
const documentLogEvery = time.Minute

// limiter lets something happen once in a while.
type limiter struct {
	mu   sync.Mutex
	last time.Time
}

func (l *limiter) allow(every time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && time.Since(l.last) < every {
		return false
	}
	l.last = time.Now()
	return true
}

// complain logs what is wrong with a counter's document, at most once a minute in
// all: the totals count every one. Names of users stay out of the log.
func (s *Syncer) logLimited(what string, id ratelimit.CounterID, err error) {
	if s.documentLog.allow(documentLogEvery) {
		s.cfg.Log.Error("counter document", "problem", what, "client_id", id.ClientID, "limit", id.Limit, "error", err)
	}
}
