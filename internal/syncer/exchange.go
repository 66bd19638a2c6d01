package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/ratelimit"
)

// maxCalls is how many exchanges of a queue may be under way at once. Another one begins only when
// the latest has taken longer than overlap.
const (
	maxCalls = 4
	overlap  = 20 * time.Millisecond
)

// exchangeLoop collects the counters that need an exchange, and exchanges them when they are due. It
// returns nil when ctx ends.
func (s *Syncer) exchangeLoop(ctx context.Context) error {
	pace := newPace(s.cfg.Interval)
	defer pace.Stop()
	calls, leases := new(calls), new(calls)
	defer calls.wait()
	defer leases.wait()
	var plans []ratelimit.Plan
	for {
		plans = s.sync.Due(s.clock.Now(), plans[:0])
		for i := range plans {
			s.schedule(plans[i], 0)
		}
		pace.adjust(s.elapsed(), plans)
		timer := time.NewTimer(min(s.dispatch(ctx, s.queue, calls), s.dispatch(ctx, s.leases, leases)))
		select {
		case <-s.sync.Wake(): // a counter is urgent
		case <-pace.C: // collect the others
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// dispatch starts the exchanges of a queue that are due, as many as may be under way, and returns
// after how long it must be called again at the latest.
func (s *Syncer) dispatch(ctx context.Context, q *dueQueue, c *calls) time.Duration {
	for {
		due, some := q.nextDue()
		if !some {
			return time.Hour
		}
		if wait := due - s.elapsed(); wait > 0 {
			return wait
		}
		if wait := c.delay(s.elapsed()); wait > 0 {
			return wait
		}
		entries := q.pop(s.elapsed())
		if len(entries) == 0 {
			return minWait
		}
		done := c.begin(s.elapsed())
		go func() {
			defer q.wakeLoop()
			defer done()
			s.guardedExchange(ctx, entries)
		}()
	}
}

// guardedExchange makes an exchange that must not end the process: its error or panic is counted,
// and its counters are planned anew.
func (s *Syncer) guardedExchange(ctx context.Context, entries []entry) {
	_ = s.loops.Guard(ctx, "exchange", func(ctx context.Context) error { return s.exchange(ctx, entries) })
}

// minWait keeps a loop from spinning while its next entry is due and cannot be taken.
const minWait = time.Millisecond

// Due times of lazy counters are rounded up to a grid, so that they are exchanged together: a
// fourth of a second, or an eighth of the wait if that is longer, and never more than the wait
// itself.
const (
	lazyGrid  = 250 * time.Millisecond
	lazyShare = 8
	maxGrid   = 2 * time.Second
)

// schedule adds a plan to its queue, to be due not before the delay has passed.
func (s *Syncer) schedule(p ratelimit.Plan, delay time.Duration) {
	due := s.elapsed() + max(s.jitter(p.In), delay)
	if p.Lazy {
		grid := min(max(p.In/lazyShare/lazyGrid*lazyGrid, lazyGrid), max(p.In, time.Millisecond), maxGrid)
		due = (due + grid - 1) / grid * grid
	}
	s.health.planned(p.Ticket)
	q := s.queue
	if p.Lease {
		q = s.leases
	}
	q.add(entry{due: due, ticket: p.Ticket})
}

// Flush exchanges the counters of a key once and at once, and so writes its unflushed counts. A
// conflict is no error: the key is written again later. It is for tests that need one exchange at a
// time, without Start.
func (s *Syncer) Flush(ctx context.Context, k ratelimit.Key) error {
	return s.exchange(ctx, s.entriesOf(k, false))
}

// Refresh is [Syncer.Flush] without writes: it reads the documents of a key at once.
func (s *Syncer) Refresh(ctx context.Context, k ratelimit.Key) error {
	return s.exchange(ctx, s.entriesOf(k, true))
}

// entriesOf returns queue entries for the counters of a key.
func (s *Syncer) entriesOf(k ratelimit.Key, readOnly bool) (entries []entry) {
	for _, p := range s.sync.Of(k) {
		s.health.planned(p.Ticket)
		entries = append(entries, entry{ticket: p.Ticket, readOnly: readOnly})
	}
	return entries
}

// exchange makes the round trips for the counters of the entries, one of them for strict limits if
// there are any. Errors are counted and pause the queue.
func (s *Syncer) exchange(ctx context.Context, entries []entry) error {
	defer s.trips.begin()()
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

// roundTrip calls the store for the tasks of x and finishes them.
func (s *Syncer) roundTrip(ctx context.Context, x *roundTrip) error {
	if len(x.tasks) == 0 {
		return nil
	}
	defer s.finishAfterPanic(x)
	results, err := s.call(ctx, x)
	took := s.elapsed() - x.began
	var wait time.Duration
	switch {
	case err == nil && x.lease:
		s.leases.succeeded(took)
	case err == nil:
		s.queue.succeeded(took)
	case x.lease: // a strict counter has its own back-off, and the requests of others wait for theirs
		s.leases.failed(s.cfg.MaxBackoff)
	default:
		wait = s.jitter(s.queue.failed(s.cfg.MaxBackoff))
		s.queue.pause(s.elapsed() + wait)
	}
	for ; x.finished < len(x.tasks); x.finished++ {
		s.finish(x, x.finished, &results[x.finished], wait)
	}
	return err
}

// roundTrip is an exchange under way.
type roundTrip struct {
	tasks    []ratelimit.Task
	items    []Item // one per task, in the same order
	writes   int    // items with a write
	reads    int    // items with a read
	began    time.Duration
	finished int  // tasks that have been finished
	lease    bool // of strict limits: requests may wait for it
}

// begin begins the tasks of the entries whose tickets are good: those of strict limits apart.
func (s *Syncer) begin(entries []entry) (x, leases *roundTrip) {
	x, leases = &roundTrip{began: s.elapsed()}, &roundTrip{began: s.elapsed(), lease: true}
	for _, it := range entries {
		now, seq := s.clock.Now(), int64(0)
		if !it.readOnly {
			seq = s.identity.nextSeq(now)
		}
		task, ok := s.sync.Begin(now, it.ticket, seq)
		if !ok {
			s.health.ticketStale(it.ticket)
			continue
		}
		s.stats.age.note(x.began, task.Age)
		if task.Lease {
			leases.tasks = append(leases.tasks, task)
		} else {
			x.tasks = append(x.tasks, task)
		}
	}
	s.fill(x)
	s.fill(leases)
	return x, leases
}

// fill sorts the tasks of a round trip by ID and sets its items.
func (s *Syncer) fill(x *roundTrip) {
	slices.SortFunc(x.tasks, func(a, b ratelimit.Task) int { return CompareIDs(a.ID, b.ID) })
	x.items = make([]Item, len(x.tasks))
	for i := range x.tasks {
		x.items[i] = s.itemFor(&x.tasks[i])
		if x.items[i].Write != nil {
			x.writes++
		}
		if x.items[i].Read {
			x.reads++
		}
	}
}

// itemFor returns what the store must do for a task.
func (s *Syncer) itemFor(t *ratelimit.Task) Item {
	it := Item{ID: t.ID, Read: t.Read}
	if t.Seq != 0 {
		it.Write = &Write{
			Versioned: t.Versioned, Version: t.Version, Etag: t.Etag, NewEtag: s.newEtag(),
			Writer: s.identity.writer(t.Seq), Seq: t.Seq, Frame: t.Frame, Delta: t.Delta, Rewrite: t.Rewrite,
			Remove: t.Remove, Pruned: t.Pruned, Expire: t.Expire,
		}
	}
	return it
}

// call calls the store, with a deadline that grows with the number of items, but for strict limits,
// and records the call. It returns one result per item. A loop that stops lets a call end by itself, so that its outcome
// is known; only the deadline of Stop aborts it.
func (s *Syncer) call(ctx context.Context, x *roundTrip) ([]Result, error) {
	end := s.health.underWay(x.began, x.writes > 0, func() { s.outage.begin(x.began, s.elapsed()) })
	defer end() // also after a panic
	var results []Result
	timeout := s.cfg.Timeout + time.Duration(len(x.items))*s.cfg.TimeoutPerItem
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
		results = make([]Result, len(x.items))
		for i := range results {
			results[i].Err = err
		}
	}
	s.recordExchange(x, results, took, err)
	return results, err
}

// withTimeout calls f with a deadline for n items, and returns how long it took and its error.
func (s *Syncer) withTimeout(ctx context.Context, n int, f func(context.Context) error) (time.Duration, error) {
	return s.within(ctx, s.cfg.Timeout+time.Duration(n)*s.cfg.TimeoutPerItem, f)
}

// within is withTimeout with another timeout.
func (s *Syncer) within(ctx context.Context, timeout time.Duration, f func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	defer context.AfterFunc(s.aborted, cancel)() //nolint:contextcheck // ends with the process, not with the call
	began := time.Now()
	err := f(ctx)
	return time.Since(began), err
}

// finish passes the result of task i to the counters, and schedules the next exchange of the
// counter after at least wait.
func (s *Syncer) finish(x *roundTrip, i int, res *Result, wait time.Duration) {
	task, it := &x.tasks[i], &x.items[i]
	r := ratelimit.Result{Status: res.Status, Read: res.Read && it.Read}
	if it.Write != nil {
		r.NewEtag = it.Write.NewEtag
		s.stats.outcome(res.Status, it.Write.Versioned)
	}
	if r.Read && res.Record != nil {
		r.Document = s.document(res.Record, task)
	}
	done := s.sync.Finish(s.clock.Now(), task, r)
	s.reportProblems(task, res, &done)
	if done.Pending {
		s.health.markUnconfirmed(task.Ticket, x.began)
	} else {
		s.health.markConfirmed(task.Ticket)
	}
	if wait == 0 && it.Read {
		wait = s.noteUnread(task, res)
	}
	if done.Planned {
		s.schedule(done.Next, wait)
	}
}

// noteUnread logs a document that the store did not read in a call that succeeded, and returns the
// back-off of its counter; 0 if the document was read.
func (s *Syncer) noteUnread(task *ratelimit.Task, res *Result) time.Duration {
	failed := s.health.noteRead(task.Ticket, res.Read)
	if failed == 0 {
		return 0
	}
	s.logLimited("not read; retrying with back-off", task.ID, cmp.Or(res.Err, errUnread))
	return s.jitter(backoff(failed, s.cfg.MaxBackoff))
}

// reportProblems counts and logs what is wrong with the document of a task.
func (s *Syncer) reportProblems(task *ratelimit.Task, res *Result, done *ratelimit.Finished) {
	if done.Lost > 0 {
		s.stats.drift.Add(1)
	}
	if done.Clone {
		s.takeNewID(s.identity.writer(task.Pending))
	}
	switch {
	case res.Status == Rejected && task.Seq != 0:
		s.logLimited("write refused; retrying in 30 s", task.ID, res.Err)
	case res.Record != nil && res.Record.Problem != "":
		s.stats.foreign.Add(1)
		s.logLimited("invalid", task.ID, errors.New(res.Record.Problem))
	case done.Foreign > 0:
		s.stats.foreign.Add(1)
		s.logLimited("invalid", task.ID,
			fmt.Errorf("%d frames are negative, too large, or far in the future", done.Foreign))
	}
}

// finishAfterPanic finishes the remaining tasks of an exchange as unknown if it has panicked, and
// panics again.
func (s *Syncer) finishAfterPanic(x *roundTrip) {
	if v := recover(); v != nil {
		for ; x.finished < len(x.tasks); x.finished++ {
			s.finish(x, x.finished, &Result{}, background.FirstRestart)
		}
		panic(v)
	}
}
