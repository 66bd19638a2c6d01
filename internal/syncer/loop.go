package syncer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
)

// maxCalls is how many exchanges of a queue may be under way at once. Another one begins only after
// the latest has taken longer than overlap.
const (
	maxCalls = 4
	overlap  = 20 * time.Millisecond
)

// minWait keeps a loop from spinning while its next entry is due but cannot be taken yet.
const minWait = time.Millisecond

// exchangeLoop collects the counters that need an exchange, and exchanges them when they are due. It
// returns nil when ctx ends.
func (s *Syncer) exchangeLoop(ctx context.Context) error {
	pace := newPace(s.cfg.Interval, s.elapsed())
	defer func() { _ = s.Settle(context.WithoutCancel(ctx)) }() // the context of calls ends them
	timer := time.NewTimer(0)
	defer timer.Stop()
	var plans []counting.Plan
	for ctx.Err() == nil {
		plans = s.sync.Due(s.clock.Now(), plans[:0])
		for i := range plans {
			s.schedule(plans[i], 0)
		}
		pace.adjust(s.elapsed(), plans)
		rest := min(s.dispatch(ctx, s.queue), s.dispatch(ctx, s.leases))
		timer.Reset(min(rest, pace.wait(s.elapsed())))
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// wakeLoop makes the exchange loop look again for counters that are due. It does not block.
func (s *Syncer) wakeLoop() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look again
	}
}

// dispatch starts the exchanges of a queue that are due, as many as may be under way at once. It
// must be called again within the time that it returns.
func (s *Syncer) dispatch(ctx context.Context, q *dueQueue) time.Duration {
	for {
		due, some := q.nextDue()
		if !some {
			return time.Hour
		}
		if wait := due - s.elapsed(); wait > 0 {
			return wait
		}
		if wait := q.calls.delay(s.elapsed()); wait > 0 {
			return wait
		}
		entries := q.pop(s.elapsed())
		if len(entries) == 0 {
			return minWait
		}
		end := q.calls.begin(s.elapsed())
		go func() {
			defer q.wake()
			defer end()
			s.guardedExchange(ctx, entries)
		}()
	}
}

// guardedExchange makes an exchange without letting it end the process: an error or panic is
// counted, and the counters are planned again.
func (s *Syncer) guardedExchange(ctx context.Context, entries []entry) {
	_ = s.loops.Guard(ctx, "exchange", func(ctx context.Context) error { return s.exchange(ctx, entries) })
}

// Flush exchanges the counters of keys once, immediately, and so writes their unflushed counts.
// There may be at most [MaxBatch] counters in all. A conflict is no error: the key is written again
// later. Flush is for tests and simulations that need one exchange at a time, without Start.
func (s *Syncer) Flush(ctx context.Context, keys ...ratelimit.Key) error {
	defer s.queue.calls.begin(s.elapsed())()
	return s.exchange(ctx, s.entriesOf(keys))
}

// entriesOf returns queue entries for the counters of keys.
func (s *Syncer) entriesOf(keys []ratelimit.Key) (entries []entry) {
	for _, k := range keys {
		for _, p := range s.sync.Of(k) {
			s.health.planned(p.Ticket)
			entries = append(entries, entry{ticket: p.Ticket})
		}
	}
	return entries
}

// exchange makes the round trips for the counters of the entries, with a separate one for strict
// limits if there are any. Errors are counted and pause the queue.
func (s *Syncer) exchange(ctx context.Context, entries []entry) error {
	x, leases := s.begin(entries)
	if len(x.tasks) == 0 {
		return s.roundTrip(ctx, leases)
	}
	if len(leases.tasks) == 0 {
		return s.roundTrip(ctx, x)
	}
	var other sync.WaitGroup
	defer other.Wait()
	other.Go(func() {
		_ = s.loops.Guard(ctx, "exchange", func(ctx context.Context) error { return s.roundTrip(ctx, leases) })
	})
	return s.roundTrip(ctx, x)
}

// roundTrip calls the store for the tasks of x and completes them. After a panic it completes them as
// unknown, and panics again.
func (s *Syncer) roundTrip(ctx context.Context, x *roundTrip) error {
	if len(x.tasks) == 0 {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			s.completeAfterPanic(x)
			panic(v)
		}
	}()
	results, err := s.call(ctx, x)
	s.complete(x, results, err)
	return err
}

// call calls the store and records the call. Its deadline grows with the number of items, except
// for strict limits. It returns one result per item. A stopping loop lets a call end by itself, so
// that its outcome is known; only the deadline of Stop aborts it.
func (s *Syncer) call(ctx context.Context, x *roundTrip) ([]exchange.Result, error) {
	end := s.health.underWay(x.began, x.writes > 0, func() { s.outage.begin(x.began, s.elapsed()) })
	defer end() // also after a panic
	var results []exchange.Result
	timeout := s.cfg.Timeout + time.Duration(len(x.items))*timeoutPerItem
	if x.lease { // a lost reply must not keep keys without permits for long
		timeout = min(s.cfg.Timeout, s.health.lateAfter())
	}
	took, err := s.within(ctx, timeout, func(ctx context.Context) (err error) {
		results, err = s.store.Exchange(ctx, x.items)
		return err
	})
	end()
	if len(results) != len(x.items) {
		if err == nil {
			err = fmt.Errorf("syncer: the store returned %d results for %d items", len(results), len(x.items))
		}
		results = make([]exchange.Result, len(x.items))
		for i := range results {
			results[i].Err = err
		}
	}
	s.recordExchange(x, results, took, err)
	return results, err
}

// within calls f with a deadline, and returns how long it took and its error.
func (s *Syncer) within(ctx context.Context, timeout time.Duration, f func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	defer context.AfterFunc(s.aborted, cancel)() // ends with the process, not with the call
	began := s.elapsed()
	err := f(ctx)
	return s.elapsed() - began, err
}
