package syncer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store/exchange"
)

// This file has the steps of an exchange: schedule, begin, complete. None of them waits. loop.go
// calls them, and calls the store between begin and complete.

// Due times of lazy counters, and of counters that are only watched, are rounded up to a grid, so
// that these counters are exchanged together. The grid is a fourth of a second, but never more than
// the wait itself. For lazy counters it is an eighth of the wait if that is longer.
const (
	usualGrid = 250 * time.Millisecond
	lazyShare = 8
	maxGrid   = 2 * time.Second
)

// grid returns the grid of a plan; 0 if the plan must not be delayed.
func grid(p counting.Plan) time.Duration {
	own := max(p.In, time.Millisecond)
	switch {
	case p.Lazy:
		return min(max(p.In/lazyShare/usualGrid*usualGrid, usualGrid), own, maxGrid)
	case p.Watching:
		return min(usualGrid, own)
	default:
		return 0
	}
}

// schedule adds a plan to its queue. It is due after the delay at the earliest.
func (s *Syncer) schedule(p counting.Plan, delay time.Duration) {
	now := s.elapsed()
	due := now + max(s.jitter(p.In), delay)
	if g := grid(p); g > 0 {
		due = (due + g - 1) / g * g
	}
	s.health.planned(p.Ticket)
	q := s.queue
	if p.Lease {
		q = s.leases
	}
	q.add(entry{due: due, planned: now, ticket: p.Ticket})
}

// roundTrip is an exchange under way.
type roundTrip struct {
	tasks    []counting.Task
	items    []exchange.Item // one per task, in the same order
	writes   int             // items with a write
	reads    int             // items with a read
	began    time.Duration
	finished int   // tasks that have been finished
	lease    bool  // counters of strict limits: requests may wait for it
	err      error // of the call
}

// begin begins the tasks of the entries with valid tickets. Tasks of strict limits get a round trip
// of their own, leases.
func (s *Syncer) begin(entries []entry) (x, leases *roundTrip) {
	x, leases = &roundTrip{began: s.elapsed()}, &roundTrip{began: s.elapsed(), lease: true}
	for _, it := range entries {
		now := s.clock.Now()
		task, ok := s.sync.Begin(now, it.ticket, s.identity.nextSeq(now))
		if !ok {
			s.health.ticketStale(it.ticket)
			continue
		}
		// If the key had no requests for a while, no decision used its age before its exchange was
		// planned.
		s.stats.age.note(x.began, min(task.Age, x.began-it.planned))
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
	slices.SortFunc(x.tasks, func(a, b counting.Task) int { return exchange.CompareIDs(a.ID, b.ID) })
	x.items = make([]exchange.Item, len(x.tasks))
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
func (s *Syncer) itemFor(t *counting.Task) exchange.Item {
	it := exchange.Item{ID: t.ID, Read: t.Read}
	if t.Seq != 0 {
		it.Write = &exchange.Write{
			Versioned: t.Versioned, Version: t.Version, Etag: t.Etag, NewEtag: newEtag(),
			Writer: s.identity.writer(t.Seq), Seq: t.Seq, Frame: t.Frame, Delta: t.Delta, Rewrite: t.Rewrite,
			Remove: t.Remove, Pruned: t.Pruned, Expire: t.Expire,
		}
	}
	return it
}

// complete finishes the tasks of x with the outcome of the call. results must have one result per
// task. An error pauses the queue.
func (s *Syncer) complete(x *roundTrip, results []exchange.Result, err error) {
	took := s.elapsed() - x.began
	x.err = err
	var wait time.Duration
	switch {
	case err == nil && x.lease:
		s.leases.succeeded(took)
	case err == nil:
		s.queue.succeeded(took)
	case x.lease: // a strict counter has its own back-off, so requests for other counters do not wait for it
		s.leases.failed(s.cfg.MaxBackoff)
	default:
		wait = s.jitter(s.queue.failed(s.cfg.MaxBackoff))
		s.queue.pause(s.elapsed() + wait)
	}
	for ; x.finished < len(x.tasks); x.finished++ {
		s.finish(x, x.finished, &results[x.finished], wait)
	}
}

// completeAfterPanic finishes the remaining tasks of an exchange that panicked as unknown.
func (s *Syncer) completeAfterPanic(x *roundTrip) {
	for ; x.finished < len(x.tasks); x.finished++ {
		s.finish(x, x.finished, &exchange.Result{}, background.FirstRestart)
	}
}

// finish passes the result of task i to the counters, and schedules the next exchange of the
// counter after at least wait.
func (s *Syncer) finish(x *roundTrip, i int, res *exchange.Result, wait time.Duration) {
	task, it := &x.tasks[i], &x.items[i]
	r := counting.Result{Status: res.Status, Read: res.Read && it.Read}
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
		wait = s.noteUnread(x, task, res)
	}
	if done.Planned {
		s.schedule(done.Next, wait)
	}
}

// noteUnread returns the back-off of a counter with a document that the store did not read; 0 if the
// document was read. It logs the document, unless the whole call failed.
func (s *Syncer) noteUnread(x *roundTrip, task *counting.Task, res *exchange.Result) time.Duration {
	failed := s.health.noteRead(task.Ticket, res.Read)
	if failed == 0 {
		return 0
	}
	if x.err == nil {
		s.logDocument("not read; retrying with back-off", task.ID, cmp.Or(res.Err, errUnread))
	}
	return s.jitter(backoff(failed, s.cfg.MaxBackoff))
}

// reportProblems counts and logs the problems of a task's document.
func (s *Syncer) reportProblems(task *counting.Task, res *exchange.Result, done *counting.Finished) {
	if done.Lost > 0 {
		s.stats.drift.Add(1)
	}
	if done.Clone {
		s.takeNewID(s.identity.writer(task.Pending))
	}
	switch {
	case res.Status == exchange.Rejected && task.Seq != 0:
		s.logDocument("write refused; retrying in 30 s", task.ID, res.Err)
	case res.Record != nil && res.Record.Problem != "":
		s.stats.foreign.Add(1)
		s.logDocument("invalid", task.ID, errors.New(res.Record.Problem))
	case done.Foreign > 0:
		s.stats.foreign.Add(1)
		s.logDocument("invalid", task.ID,
			fmt.Errorf("%d frames are negative, too large, or far in the future", done.Foreign))
	}
}
