package syncer

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/syncer/clock"
)

// Stats has totals since a syncer was made, and its present state.
type Stats struct {
	// Writes by their outcome. Fallback counts the applied writes that were not conditional on the
	// version.
	Applied, Fallback, Conflicts, Unknown, Rejected int64

	Foreign int64 // documents with invalid parts
	Drift   int64 // documents without counts that this instance had written
	Clones  int64 // times that another process was found to use the ID of this one
	Panics  int64

	Waiting int           // entries in the queues, including stale tickets
	Due     int           // entries that are due
	Late    time.Duration // how long the first of them has been due
	// Age is the longest time, recently, that requests of a key were decided without asking the
	// store.
	Age         time.Duration
	Unconfirmed time.Duration // age of the oldest unconfirmed write
	Instances   int           // alive, this one included; 0: not known
	Stalled     bool          // limits are decided by their OnOutage
	Degraded    bool          // calls to the store fail, or writes stay unconfirmed
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

// live returns how many instances are alive, as last seen; at least this one.
func (c *counts) live() int { return max(int(c.instances.Load()), 1) }

// peak is the highest of the durations that were noted in the last one to two periods.
type peak struct {
	mu            sync.Mutex
	period        time.Duration // begin of the present period, since the syncer was made
	now, previous time.Duration
}

// peakPeriod is a common interval between two scrapes.
const peakPeriod = 15 * time.Second

// note takes a duration into account.
func (p *peak) note(elapsed, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rotate(elapsed)
	p.now = max(p.now, d)
}

// rotate begins a new period if the present one is over.
func (p *peak) rotate(elapsed time.Duration) {
	switch since := elapsed - p.period; {
	case since >= 2*peakPeriod:
		p.now, p.previous, p.period = 0, 0, elapsed
	case since >= peakPeriod:
		p.now, p.previous, p.period = 0, p.now, elapsed
	}
}

// value returns the highest duration of the present and the previous period.
func (p *peak) value(elapsed time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rotate(elapsed)
	return max(p.now, p.previous)
}

// outcome counts a write.
func (c *counts) outcome(s exchange.Status, versioned bool) {
	switch s {
	case exchange.Applied:
		c.applied.Add(1)
		if !versioned {
			c.fallback.Add(1)
		}
	case exchange.Conflict:
		c.conflicts.Add(1)
	case exchange.Rejected:
		c.rejected.Add(1)
	default:
		c.unknown.Add(1)
	}
}

// Problems that are detected without a failed call.
var (
	errUnconfirmed = errors.New("syncer: writes stay unconfirmed")
	errUnread      = errors.New("syncer: the store returned neither the document nor an error")
)

// Stats returns the totals and the present state.
func (s *Syncer) Stats() Stats {
	now := s.elapsed()
	waiting, due, late := s.queue.waiting(now)
	leases, dueLeases, lateLease := s.leases.waiting(now)
	c := &s.stats
	st := Stats{
		Applied: c.applied.Load(), Fallback: c.fallback.Load(),
		Conflicts: c.conflicts.Load(), Unknown: c.unknown.Load(), Rejected: c.rejected.Load(),
		Foreign: c.foreign.Load(), Drift: c.drift.Load(), Clones: c.clones.Load(), Panics: c.panics.Load(),
		Waiting: waiting + leases, Due: due + dueLeases, Late: max(late, lateLease),
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

// logDocument logs a problem with a counter's document: the first one, another one at most once a minute, and
// the same one once an hour. The totals count every problem. It leaves out the username.
func (s *Syncer) logDocument(what string, id ratelimit.CounterID, err error) {
	if s.problems.Add(fmt.Errorf("%s: %s %s: %w", what, id.ClientID, id.Limit, err)) {
		s.cfg.Log.Error("problem with a counter document", slog.String("problem", what), slog.String("client_id", id.ClientID), slog.String("limit", id.Limit), slog.Any("error", err))
	}
}
