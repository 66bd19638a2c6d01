package syncer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/ratelimit"
)

// maxCalls is how many exchanges may be under way at once. A further one begins
// only if those under way take longer than overlap.
const (
	maxCalls = 4
	overlap  = 20 * time.Millisecond
)

// exchangeLoop plans the counters that became due, and exchanges them when their
// time has come. It returns nil when ctx ends.
func (s *Syncer) exchangeLoop(ctx context.Context) error {
	pace := newPace(s.cfg.Interval)
	defer pace.Stop()
	calls := newCalls()
	defer calls.wait()
	var plans []ratelimit.Plan
	for {
		plans = s.sync.Due(s.clock.Now(), plans[:0])
		for i := range plans {
			s.schedule(plans[i], 0)
		}
		pace.adjust(s.elapsed(), plans)
		timer := time.NewTimer(s.dispatch(ctx, calls))
		select {
		case <-s.sync.Wake(): // the urgent ones wake it
		case <-pace.C: // the others are collected
		case <-s.queue.wake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// dispatch starts the exchanges that are due, as many as may be under way, and
// returns how long until it has to be called again at the latest.
func (s *Syncer) dispatch(ctx context.Context, c *calls) time.Duration {
	for {
		due, some := s.queue.nextDue()
		if !some {
			return time.Hour
		}
		if wait := due - s.elapsed(); wait > 0 {
			return wait
		}
		if wait := c.delay(s.elapsed()); wait > 0 {
			return wait
		}
		items := s.queue.pop(s.elapsed())
		if len(items) == 0 {
			return minWait
		}
		done := c.begin(s.elapsed())
		go func() {
			defer s.queue.wakeLoop()
			defer done()
			s.guardedExchange(ctx, items)
		}()
	}
}

// guardedExchange makes an exchange that must not take the process down. Its error or panic is
// counted, and its counters are planned anew.
func (s *Syncer) guardedExchange(ctx context.Context, items []entry) {
	_ = s.loops.Guard(ctx, "exchange", func(ctx context.Context) error { return s.exchange(ctx, items) })
}

// minWait keeps a loop from spinning while its next item is due and cannot be had.
const minWait = time.Millisecond

// lazyGrid is what the due times of counters that can wait are rounded up to, so
// that they go out together: a fourth of a second, or an eighth of the wait, and
// never more than the wait, which is short where the window is.
const (
	lazyGrid  = 250 * time.Millisecond
	lazyShare = 8
	maxGrid   = 2 * time.Second
)

// schedule puts a plan on the agenda, to be due after at least the delay.
func (s *Syncer) schedule(p ratelimit.Plan, delay time.Duration) {
	due := s.elapsed() + max(s.jitter(p.In), delay)
	if p.Lazy {
		grid := min(max(p.In/lazyShare/lazyGrid*lazyGrid, lazyGrid), max(p.In, time.Millisecond), maxGrid)
		due = (due + grid - 1) / grid * grid
	}
	s.health.planned(p.Ticket)
	s.queue.add(entry{due: due, ticket: p.Ticket})
}

// Flush makes one exchange of the counters of a key at once: it writes what is
// not yet written. A conflict is no error: the key is written again in its turn.
func (s *Syncer) Flush(ctx context.Context, k ratelimit.Key) error {
	return s.exchange(ctx, s.entriesOf(k, false))
}

// Refresh reads the documents of a key at once, and writes nothing.
func (s *Syncer) Refresh(ctx context.Context, k ratelimit.Key) error {
	return s.exchange(ctx, s.entriesOf(k, true))
}

func (s *Syncer) entriesOf(k ratelimit.Key, readOnly bool) (items []entry) {
	for _, p := range s.sync.Of(k) {
		s.health.planned(p.Ticket)
		items = append(items, entry{ticket: p.Ticket, readOnly: readOnly})
	}
	return items
}

// exchange makes one round trip for the counters of the items. Errors are counted
// and make the agenda wait.
func (s *Syncer) exchange(ctx context.Context, items []entry) error {
	x := s.begin(items)
	if len(x.tasks) == 0 {
		return nil
	}
	defer s.finishAfterPanic(x)
	results, err := s.call(ctx, x)
	took := s.elapsed() - x.began
	var wait time.Duration
	if err != nil {
		wait = s.jitter(s.queue.failed(s.cfg.MaxBackoff))
		s.queue.pause(s.elapsed() + wait)
	} else {
		s.queue.succeeded(took)
	}
	for ; x.finished < len(x.tasks); x.finished++ {
		s.finish(x, x.finished, &results[x.finished], wait)
	}
	return err
}

// trip is one exchange under way.
type roundTrip struct {
	tasks    []ratelimit.Task
	items    []Item
	writes   int
	reads    int
	began    time.Duration
	finished int // tasks that were finished
}

// begin takes up what is to be done, sorted by ID.
func (s *Syncer) begin(items []entry) *roundTrip {
	x := &roundTrip{began: s.elapsed()}
	for _, it := range items {
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
		x.tasks = append(x.tasks, task)
	}
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
	return x
}

// item is what the store is asked for.
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

// call calls the store in a time that grows with what it is asked for. A loop
// that has to stop lets a call end by itself, because its outcome is worth
// knowing; only Stop's deadline aborts it.
func (s *Syncer) call(ctx context.Context, x *roundTrip) ([]Result, error) {
	end := s.health.underWay(x.began, x.writes > 0, s.outage.begin)
	defer end() // also after a panic
	var results []Result
	took, err := s.withTimeout(ctx, len(x.items), func(ctx context.Context) (err error) {
		results, err = s.store.Exchange(ctx, x.items)
		return err
	})
	end()
	if len(results) != len(x.items) {
		if err == nil {
			err = fmt.Errorf("syncer: the store answered %d of %d items", len(results), len(x.items))
		}
		results = make([]Result, len(x.items))
		for i := range results {
			results[i].Err = err
		}
	}
	s.recordExchange(x, results, took, err)
	return results, err
}

// bounded calls f with a deadline, and returns how long it took.
func (s *Syncer) withTimeout(ctx context.Context, n int, f func(context.Context) error) (time.Duration, error) {
	timeout := s.cfg.Timeout + time.Duration(n)*s.cfg.TimeoutPerItem
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	defer context.AfterFunc(s.aborted, cancel)() //nolint:contextcheck // ends with the process, not with the call
	began := time.Now()
	err := f(ctx)
	return time.Since(began), err
}

// finish takes over the result of one task, and plans what is next.
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

// unread reports a document that the store has not read although it reported no
// failure, and returns how long to wait before it is asked again.
func (s *Syncer) noteUnread(task *ratelimit.Task, res *Result) time.Duration {
	failed := s.health.noteRead(task.Ticket, res.Read)
	if failed == 0 {
		return 0
	}
	s.logLimited("document of a counter not read; tried again seldom", task.ID, cmp.Or(res.Err, errUnread))
	return s.jitter(backoff(failed, s.cfg.MaxBackoff))
}

// notice counts and reports what was found wrong.
func (s *Syncer) reportProblems(task *ratelimit.Task, res *Result, done *ratelimit.Finished) {
	if done.Lost > 0 {
		s.stats.drift.Add(1)
	}
	if done.Clone {
		s.takeNewID(s.identity.writer(task.Pending))
	}
	switch {
	case res.Status == Rejected && task.Seq != 0:
		s.logLimited("write of a counter refused; tried again in 30 s", task.ID, res.Err)
	case res.Record != nil && res.Record.Problem != "":
		s.stats.foreign.Add(1)
		s.logLimited("counter document makes no sense", task.ID, fmt.Errorf("%s", res.Record.Problem))
	case done.Foreign > 0:
		s.stats.foreign.Add(1)
		s.logLimited("counter document makes no sense", task.ID,
			fmt.Errorf("%d frames that are negative, absurd, or far in the future", done.Foreign))
	}
}

// finishAfterPanic gives back the counters of an exchange whose outcome a panic
// has made unknown, and lets the panic go on.
func (s *Syncer) finishAfterPanic(x *roundTrip) {
	if v := recover(); v != nil {
		for ; x.finished < len(x.tasks); x.finished++ {
			s.finish(x, x.finished, &Result{}, background.FirstRestart)
		}
		panic(v)
	}
}
