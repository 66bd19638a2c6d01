package syncer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

// together is how much earlier than due a counter goes along with others.
const together = 2 * time.Millisecond

// refusedWait is how long a counter waits whose write the store refuses.
const refusedWait = 30 * time.Second

// job is one write under way.
type job struct {
	counter *ratelimit.Counter
	write   Write
	limit   ratelimit.Limit
	read    bool // the document was read meanwhile
	done    bool
}

// Flush writes what is not yet written of one key, at once. A conflict is no
// error: the key is then read and written again in its turn.
func (s *Syncer) Flush(ctx context.Context, k ratelimit.Key) error {
	return s.flushItems(ctx, s.itemsOf(k))
}

// itemsOf schedules the counters of a key for somebody who cannot wait.
func (s *Syncer) itemsOf(k ratelimit.Key) (items []item) {
	for _, x := range s.counters.Find(k) {
		if _, ticket, ok := s.counters.Look(x, s.cfg.Now()); ok {
			items = append(items, item{due: s.elapsed(), added: s.elapsed(), counter: x, ticket: ticket})
		}
	}
	return items
}

// flush writes the counters that are due, in one call. Failures are seen to:
// they are counted, and make the lane wait.
func (s *Syncer) flush(ctx context.Context) {
	_ = s.flushItems(ctx, s.writes.take(s.elapsed()+together, s.writes.size(), nil))
}

func (s *Syncer) flushItems(ctx context.Context, items []item) error {
	jobs := s.beginWrites(items)
	if len(jobs) == 0 {
		return nil
	}
	defer s.releaseAfterPanic(jobs)
	began := time.Now()
	mergeRead := s.readBeside(ctx, jobs)
	outcomes, err := s.apply(ctx, jobs)
	mergeRead()
	wait := s.backoff(s.writes, time.Since(began), err)
	for i := range jobs {
		out := Outcome{Status: Unknown, Err: err}
		if err == nil {
			out = outcomes[i]
		}
		s.settle(&jobs[i], out, wait)
	}
	return err
}

func (s *Syncer) beginWrites(items []item) []job {
	jobs := make([]job, 0, len(items))
	for _, it := range items {
		w, ok := s.counters.BeginWrite(it.counter, s.cfg.Now(), it.ticket, s.nextSeq())
		switch {
		case !ok:
		case len(w.Delta) == 0:
			s.release(it.counter, 0)
		default:
			s.stats.age.note(s.elapsed(), min(w.Age, s.elapsed()-it.added))
			jobs = append(jobs, job{counter: it.counter, write: s.conditioned(&w), limit: w.Limit})
		}
	}
	slices.SortFunc(jobs, func(a, b job) int { return compareIDs(a.write.ID, b.write.ID) })
	return jobs
}

// conditioned makes a write depend on the document as it is known, as long as
// that has a chance, and otherwise only on not having been applied before.
func (s *Syncer) conditioned(w *ratelimit.Write) Write {
	return Write{
		ID: w.ID, Blind: w.Contended || w.Tries > 0, Version: w.Version, Etag: w.Etag, NewEtag: s.newEtag(),
		Seq: w.Seq, Delta: w.Delta, Expire: w.Expire,
	}
}

func compareIDs(a, b ratelimit.CounterID) int {
	return cmp.Or(cmp.Compare(a.ClientID, b.ClientID), cmp.Compare(a.Username, b.Username), cmp.Compare(a.Limit, b.Limit))
}

func (s *Syncer) apply(ctx context.Context, jobs []job) ([]Outcome, error) {
	writes := make([]Write, len(jobs))
	for i := range jobs {
		writes[i] = jobs[i].write
	}
	var outcomes []Outcome
	err := s.call(ctx, OpApply, len(writes), func(ctx context.Context) (err error) {
		outcomes, err = s.store.Apply(ctx, s.id, writes)
		if err == nil && len(outcomes) != len(writes) {
			err = fmt.Errorf("syncer: the store answered %d of %d writes", len(outcomes), len(writes))
		}
		return err
	})
	return outcomes, err
}

// call calls the store in a time that grows with what it is asked for. A loop
// that is told to stop lets a call end by itself, because its outcome is worth
// knowing; only Stop's deadline aborts it.
func (s *Syncer) call(ctx context.Context, op Op, n int, f func(context.Context) error) error {
	timeout := s.cfg.Timeout + time.Duration(n)*s.cfg.TimeoutPerItem
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	defer context.AfterFunc(s.aborted, cancel)() //nolint:contextcheck // ends with the process, not with the call
	began := time.Now()
	err := f(ctx)
	s.observer.Call(op, n, time.Since(began), err)
	s.stats.call(op, n, err)
	s.health.note(err)
	return err
}

// settle takes over the outcome of one write.
func (s *Syncer) settle(j *job, out Outcome, wait time.Duration) {
	j.done = true
	now := s.cfg.Now()
	switch out.Status {
	case Applied:
		wait = 0
		if j.write.Blind {
			s.counters.AppliedBlind(j.counter, now, j.write.NewEtag, j.read)
		} else {
			s.counters.Applied(j.counter, now, j.write.Version+1, j.write.NewEtag)
		}
	case Conflict:
		wait = 0
		s.counters.Refused(j.counter, now, j.write.Blind)
	case Rejected:
		wait = refusedWait
		s.complain("the store refuses the write of a counter", j.write.ID, out.Err)
	case Unknown: // the same write again, later
		wait = max(wait, minSpacing)
	}
	s.stats.outcome(out.Status, j.write.Blind)
	s.release(j.counter, wait)
}

// release ends an exchange and schedules the next, if there is to be one.
func (s *Syncer) release(x *ratelimit.Counter, wait time.Duration) {
	s.counters.Release(x, s.cfg.Now())
	s.schedule(x, wait)
}

// backoff makes the lane wait longer with each failed call, and the calls
// smaller: what failed may have been too much at once. It returns how long.
func (s *Syncer) backoff(l *lane, took time.Duration, err error) time.Duration {
	if err == nil {
		l.succeeded(took)
		return 0
	}
	wait := s.jitter(min(firstBackoff<<min(l.failed(), 16), s.cfg.MaxBackoff))
	l.pause(s.elapsed() + wait)
	return wait
}

// firstBackoff is doubled with every failure.
const firstBackoff = 25 * time.Millisecond
