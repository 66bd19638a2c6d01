package syncer

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
)

// Bounds of health.
const (
	healthEvery = time.Second
	// degradedAfter is how long a write may stay unconfirmed, or all calls of one kind fail, before
	// the syncer is degraded.
	degradedAfter = 3 * time.Second
	// stallAfter, plus four times the usual time of a call, is how long a call may take before
	// limits are decided by their OnOutage.
	stallAfter = 250 * time.Millisecond
)

// health records the outcome of the calls to the store, each kind on its own, and the unconfirmed
// writes. Unless noted otherwise, durations are since the syncer was made.
type health struct {
	elapsed func() time.Duration

	mu       sync.Mutex
	ops      map[Op]*opHealth
	failed   time.Duration // when an exchange last failed, in part or as a whole, or was late; 0: never
	inFlight map[*storeCall]bool
	pending  map[uint64]*unconfirmedWrite // by counter
	unread   map[uint64]int               // by counter: exchanges in a row that should have read its document but did not
	usual    time.Duration                // duration of a call that succeeds, smoothed
}

// opHealth is the health of one kind of call.
type opHealth struct {
	failing bool
	since   time.Duration // begin of the first failed call in a row
	err     error         // of the latest call
}

// unconfirmedWrite is a write that is not known to be applied.
type unconfirmedWrite struct {
	since      time.Duration   // when the first attempt began
	ticket     counting.Ticket // of the latest plan of its counter
	staleSince time.Duration   // when that ticket was found stale; 0: it was not
}

// staleAfter is how long a counter may have a stale ticket and no new plan before it counts as
// gone. A change of its limit leaves a counter without a plan for a moment.
const staleAfter = 2 * time.Second

// storeCall is a call under way.
type storeCall struct {
	began  time.Duration
	writes bool
}

// newHealth returns the health of a syncer that has made no call.
func newHealth(elapsed func() time.Duration) *health {
	h := &health{
		elapsed: elapsed, ops: map[Op]*opHealth{}, inFlight: map[*storeCall]bool{},
		pending: map[uint64]*unconfirmedWrite{}, unread: map[uint64]int{},
	}
	for _, op := range Ops() {
		h.ops[op] = &opHealth{}
	}
	return h
}

// underWay records a call that begins, and calls late if the call takes too long, see stallAfter.
// The returned function ends the call; after that late is not called.
func (h *health) underWay(began time.Duration, writes bool, late func()) (end func()) {
	f := &storeCall{began: began, writes: writes}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight[f] = true
	timer := time.AfterFunc(h.late(), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.inFlight[f] {
			h.failed = h.elapsed()
			late()
		}
	})
	return func() {
		timer.Stop()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.inFlight, f)
	}
}

// late returns after how long a call is late. h.mu must be held.
func (h *health) late() time.Duration { return stallAfter + 4*h.usual }

// lateAfter returns after how long a call is late.
func (h *health) lateAfter() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.late()
}

// recordCall records a call that has ended.
func (h *health) recordCall(op Op, took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.ops[op]
	if err == nil {
		*o = opHealth{}
		h.usual += (took - h.usual) / 8
		return
	}
	if !o.failing {
		o.failing, o.since = true, h.elapsed()-took
	}
	o.err = err
}

// exchangeFailed records that an exchange has failed, in part or as a whole.
func (h *health) exchangeFailed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = h.elapsed()
}

// clearIfIdle forgets the failures of exchanges if nothing is left to retry, and reports whether it
// did. Nothing is left if no exchange is under way, none has failed within the time after, and no
// write is unconfirmed.
func (h *health) clearIfIdle(after time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.inFlight) > 0 || len(h.pending) > 0 || h.failed != 0 && h.elapsed()-h.failed <= after {
		return false
	}
	*h.ops[OpWrite], *h.ops[OpRead] = opHealth{}, opHealth{}
	return true
}

// markUnconfirmed records that a write of a counter is not known to be applied; since is when its
// first attempt began.
func (h *health) markUnconfirmed(t counting.Ticket, since time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending[t.Counter()] == nil {
		h.pending[t.Counter()] = &unconfirmedWrite{since: since, ticket: t}
	}
}

// planned records the latest plan of a counter.
func (h *health) planned(t counting.Ticket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.pending[t.Counter()]; d != nil {
		d.ticket, d.staleSince = t, 0
	}
}

// ticketStale records that a ticket is no longer valid: its counter was planned again, will be
// planned again, or is gone.
func (h *health) ticketStale(t counting.Ticket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.pending[t.Counter()]; d != nil && d.ticket == t {
		d.staleSince = h.elapsed()
	}
	delete(h.unread, t.Counter())
}

// noteRead records whether an exchange that should read the document of a counter did so, and
// returns how many in a row did not.
func (h *health) noteRead(t counting.Ticket, was bool) (failed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was {
		delete(h.unread, t.Counter())
		return 0
	}
	h.unread[t.Counter()]++
	return h.unread[t.Counter()]
}

// dropStale drops the writes of counters that are gone.
func (h *health) dropStale() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.elapsed()
	maps.DeleteFunc(h.pending, func(_ uint64, d *unconfirmedWrite) bool { return d.staleSince != 0 && now-d.staleSince > staleAfter })
}

// markConfirmed records that a counter has no unconfirmed write.
func (h *health) markConfirmed(t counting.Ticket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pending, t.Counter())
}

// unconfirmedFor returns the age of the oldest unconfirmed write, including one under way, or 0
// without unconfirmed writes.
func (h *health) unconfirmedFor() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.oldest(h.elapsed())
}

// oldest is unconfirmedFor with h.mu held.
func (h *health) oldest(now time.Duration) (age time.Duration) {
	for f := range h.inFlight {
		if f.writes {
			age = max(age, now-f.began)
		}
	}
	for _, d := range h.pending {
		age = max(age, now-d.since)
	}
	return age
}

// degraded returns why the syncer is degraded, and for how long; 0 and nil if it is not.
func (h *health) degraded() (lasted time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.elapsed()
	if age := h.oldest(now); age >= degradedAfter {
		lasted, err = age, errUnconfirmed
	}
	for _, op := range slices.Sorted(maps.Keys(h.ops)) {
		if o := h.ops[op]; o.failing && now-o.since >= degradedAfter {
			lasted, err = max(lasted, now-o.since), o.err
		}
	}
	return lasted, err
}

// recordExchange records an exchange as a write, a read, or both. Each of the two has failed if all
// of its items have. An exchange with an error begins an outage. Any other exchange ends it.
func (s *Syncer) recordExchange(x *roundTrip, results []exchange.Result, took time.Duration, err error) {
	var writeErr, readErr error
	written, read := 0, 0
	for i := range results {
		it, res := &x.items[i], &results[i]
		if it.Write != nil && res.Status == exchange.Unknown {
			writeErr = cmp.Or(res.Err, errUnconfirmed)
		} else if it.Write != nil {
			written++
		}
		if it.Read && res.Read {
			read++
		}
	}
	if x.writes > 0 {
		if written > 0 {
			writeErr = nil
		} else if writeErr == nil {
			writeErr = err
		}
		s.recordCall(OpWrite, x.writes, took, writeErr)
	}
	if x.reads > 0 {
		if read == 0 {
			readErr = cmp.Or(err, errUnread)
		}
		s.recordCall(OpRead, x.reads, took, readErr)
	}
	if writeErr != nil || readErr != nil || err != nil {
		s.health.exchangeFailed()
	}
	if err != nil {
		s.outage.begin(x.began, s.elapsed())
		return
	}
	s.outage.end(s.elapsed(), s.clock.Now())
}

// recordCall records a call that has ended.
func (s *Syncer) recordCall(op Op, items int, took time.Duration, err error) {
	s.cfg.Observer.Call(op, items, took, err)
	s.health.recordCall(op, took, err)
}

// watchHealth logs when the syncer becomes degraded and when it recovers, and checks the clock.
func (s *Syncer) watchHealth(context.Context) {
	s.watchClock()
	s.outage.recovered(s.elapsed())
	s.health.dropStale()
	lasted, err := s.health.degraded()
	if (err != nil) == s.stats.degraded.Swap(err != nil) {
		return
	}
	left := s.sync.Unflushed(s.clock.Now(), nil)
	waiting := []any{slog.Int("counters", left.Counters), slog.Int64("requests", left.Requests)}
	if err != nil {
		s.stats.degradedAt.Store(int64(s.elapsed() - lasted))
		s.cfg.Log.Error("counts not shared: store failing", append(waiting, slog.String("for", lasted.Round(time.Millisecond).String()), slog.Any("error", err))...)
		return
	}
	lasted = s.elapsed() - time.Duration(s.stats.degradedAt.Load())
	s.cfg.Log.Info("counts shared again", append(waiting, slog.String("after", lasted.Round(time.Millisecond).String()))...)
}
