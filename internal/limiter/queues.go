package limiter

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

// lookAgain is the longest time for which a queue does not check for changes. A change applies to
// waiting requests, too, within two seconds. An instance may need 1.6 s to read it.
const lookAgain = 400 * time.Millisecond

// Queues are the queues of waiting requests, by key. They are safe for concurrent use.
type Queues struct {
	counters *counting.Counters
	clock    func() time.Time
	after    func(d time.Duration, f func()) Timer

	mu      sync.Mutex
	queues  map[ratelimit.Key][]*queue // requests in all queues: those that wait, and those that would wait, in dry-run
	waiting [2]int                     // requests in all queues: those that are held, and those that would be, in dry-run
	closed  bool
}

// NewQueues returns empty queues for keys of the counters. clock must be the clock of the counters.
func NewQueues(counters *counting.Counters, clock func() time.Time) *Queues {
	return NewQueuesOn(counters, clock, func(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) })
}

// NewQueuesOn is [NewQueues] with other timers, for example simulated ones. after replaces [time.AfterFunc].
func NewQueuesOn(counters *counting.Counters, clock func() time.Time, after func(d time.Duration, f func()) Timer) *Queues {
	return &Queues{counters: counters, clock: clock, after: after, queues: map[ratelimit.Key][]*queue{}}
}

// Timer is the part of [time.Timer] that the queues use.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// id identifies a queue: the key, and the grants of the limit that its requests wait for (none if
// it counts all grants). So a request does not wait behind requests for a limit that does not count
// it.
type id struct {
	key    ratelimit.Key
	grants ratelimit.Grants
}

// standing yields the queues that a request of the key waits in or behind: the queues for limits
// that count it.
func (l *Queues) standing(k ratelimit.Key, e *ratelimit.Effective) iter.Seq[*queue] {
	return func(yield func(*queue) bool) {
		for _, q := range l.queues[k] {
			if q.grants.Count(e.Grant()) && !yield(q) {
				return
			}
		}
	}
}

// behind returns the queue that a request of the key waits in or behind, or nil.
func (l *Queues) behind(k ratelimit.Key, e *ratelimit.Effective) *queue {
	for q := range l.standing(k, e) {
		return q
	}
	return nil
}

// queue has the waiting requests of one id.
type queue struct {
	id
	list     []*place
	denied   ratelimit.Decision // latest denial of its first request
	mode     ratelimit.Mode     // mode of that denial
	forecast *counting.Forecast // for the next new request, behind the list; nil: to be created
	timer    Timer
	fresh    bool // the counts of other processes were requested since the latest denial
	serving  bool // a goroutine is deciding its first requests
	again    bool // decide the first request again after the present decision, whatever that is
}

// place is a request in a queue.
type place struct {
	queue   *queue
	policy  func() *ratelimit.Effective
	came    time.Time
	virtual bool // in dry-run: no caller waits for the decision
	result  Admission
	decided func()        // called when result is final, unless the place is virtual
	done    chan struct{} // closed by decided, unless the caller has its own decided
}

// Admission is the decision on a request, and how long it waited.
type Admission struct {
	ratelimit.Decision
	Waited time.Duration // in its queue
	Leased time.Duration // for permits of a strict limit or the first read of a key, without a queue
	// Held is set if the request was in a queue, or if the queues are closed. Its denial may then
	// be due to the caller or this process ending, and not to a client that asks too often.
	Held  bool
	at    time.Time            // when it was decided
	under *ratelimit.Effective // limits under which it was decided
	place *place               // the place that counts it later, in dry-run; nil: none
}

// Own returns the part of the admission that counts against the key itself, without its source and
// total. Give this part back separately if the request moves to another key.
func (t Admission) Own() Admission {
	if t.under != nil {
		t.under = t.under.Own()
	}
	return t
}

// Take decides on one request of the key like [counting.Counters.Await]. If the request is over
// the limit and its policy allows waiting, it waits in a queue until it passes. The outcome is then
// Delayed. In dry-run the outcome is WouldDelay and it does not wait. policy returns the limits for
// the request at the time of the call. Apart from the source address they must be the same for all
// requests with one key and grant. policy must not block.
//
// If the context ends while the request waits, the request is denied and its place goes to the next
// one.
func (l *Queues) Take(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective) Admission {
	p, t := l.enter(ctx, k, policy, nil)
	if p == nil {
		return t
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	return l.end(ctx, p)
}

// Enter is [Queues.Take] without the wait, for callers that have many waiting requests. If the
// request is decided at once, Enter returns its admission, and end is nil. Otherwise it calls decided
// once when the request is decided. decided must not block or use the queues. Call end after that,
// or to stop waiting. It returns the admission.
func (l *Queues) Enter(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective, decided func()) (t Admission, end func(context.Context) Admission) {
	p, t := l.enter(ctx, k, policy, decided)
	if p == nil {
		return t, nil
	}
	return t, func(ctx context.Context) Admission { return l.end(ctx, p) }
}

// enter returns the place of a waiting request, or the admission of a request that is decided at once.
// decided is called when the waiting request is decided. If it is nil, the place gets a channel
// instead.
func (l *Queues) enter(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective, decided func()) (*place, Admission) {
	e := policy()
	if !e.Waits(k) {
		return nil, l.Decide(ctx, k, e)
	}
	var first ratelimit.Decision // on the request, if no other one waits
	if !l.has(k, e) {
		t := l.Decide(ctx, k, e)
		if !waits(&t.Decision) || t.RetryAfter > e.Wait.Longest {
			return nil, t
		}
		first = t.Decision
	}
	return l.join(k, e, policy, &first, decided)
}

// waits reports whether a request with this decision waits. Requests never wait for a source or a
// total. Requests of other queues of the client, and requests without a queue, use the same room,
// so no queue could predict it.
func waits(d *ratelimit.Decision) bool { return d.Over() && !d.OverShared() }

// Decide is [Queues.Take] for a request that must not wait in a queue.
func (l *Queues) Decide(ctx context.Context, k ratelimit.Key, e *ratelimit.Effective) Admission {
	now := l.clock()
	d, waited := l.counters.Await(ctx, now, k, e, 1)
	return Admission{Decision: d, Leased: waited, at: now.Add(waited), under: e}
}

// has reports whether any request waits that this one would have to wait behind.
func (l *Queues) has(k ratelimit.Key, e *ratelimit.Effective) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.behind(k, e) != nil
}

// join adds a request to the queue of its key. If there is no free place, or the request would pass
// too late, it returns the denial. In dry-run it returns the outcome at once. first is the denial
// that made the request join, if there was no queue.
func (l *Queues) join(k ratelimit.Key, e *ratelimit.Effective, policy func() *ratelimit.Effective, first *ratelimit.Decision, decided func()) (p *place, at Admission) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	q := l.behind(k, e)
	if q == nil {
		binding, _ := first.BindingLimit()
		q = &queue{id: id{k, binding.Limit.Grants}}
		if first.Counted() {
			q.denied, q.mode = *first, e.Mode
		}
	}
	if q.mode != e.Mode { // the queue has ended since, or the denial is of another mode
		d := l.counters.Take(now, k, e, 1)
		if !waits(&d) {
			return nil, Admission{Decision: d, at: now, under: e}
		}
		q.denied, q.mode = d, e.Mode
	}
	pass := l.nextPass(q, now, e)
	if !l.fits(q, e, pass.Sub(now)) {
		return nil, Admission{Decision: q.refusal(pass.Sub(now)), Held: l.closed, at: now}
	}
	p = &place{queue: q, policy: policy, came: now, virtual: e.Mode == ratelimit.DryRun, decided: decided}
	if decided == nil {
		p.done = make(chan struct{})
		p.decided = func() { close(p.done) }
	}
	q.forecast.Admit()
	q.list = append(q.list, p)
	l.waiting[kindOf(p.virtual)]++
	if q.timer == nil {
		all := l.queues[k]
		at, _ := slices.BinarySearchFunc(all, q, func(a, b *queue) int { return cmp.Compare(b.grants, a.grants) })
		l.queues[k] = slices.Insert(all, at, q)
		q.timer = l.after(l.until(q, pass.Sub(now), e.Wait.Longest), func() { l.serve(q) })
	}
	if p.virtual {
		d := q.denied
		d.Outcome, d.RetryAfter = ratelimit.WouldDelay, 0
		return nil, Admission{Decision: d, at: now, place: p}
	}
	return p, Admission{}
}

// until returns how long to wait before the first request is decided. pass is the predicted wait.
// rest is the time left for the request. If other processes count the key too, the wait is random,
// so that they do not all compete for the room of one request. It is also short enough to decide
// with the counts of the others.
func (l *Queues) until(q *queue, pass, rest time.Duration) time.Duration {
	if spread := q.forecast.Spread(); spread > 0 {
		pass += rand.N(spread) //nolint:gosec // needs no secrecy
		if before := l.counters.RefreshTime(); rest > before {
			rest -= before
		}
	}
	return min(pass, rest, lookAgain)
}

// nextPass returns when the next new request will pass.
func (l *Queues) nextPass(q *queue, now time.Time, e *ratelimit.Effective) time.Time {
	if q.forecast == nil {
		q.forecast = l.counters.Forecast(now, q.key, e)
		for range q.list {
			q.forecast.Admit()
		}
	}
	if pass := q.forecast.Next(); pass.After(now) {
		return pass
	}
	return now
}

// fits reports whether the queue has a place for one more request that waits this long.
func (l *Queues) fits(q *queue, e *ratelimit.Effective, wait time.Duration) bool {
	places := 0
	for _, other := range l.queues[q.key] {
		places += len(other.list)
	}
	return !l.closed && wait <= e.Wait.Longest && places < e.Wait.AtOnce && l.waiting[kindOf(e.Mode == ratelimit.DryRun)] < ratelimit.MaxWaiting
}

// kindOf returns the index in Queues.waiting of a place that is virtual, or not.
func kindOf(virtual bool) int {
	if virtual {
		return 1
	}
	return 0
}

// refusal returns the denial of a request that would pass only after the wait.
func (q *queue) refusal(wait time.Duration) ratelimit.Decision {
	d := q.denied.WithoutSource() // the source is the one of the first request
	d.RetryAfter = max(wait, time.Millisecond)
	return d
}

// end ends the wait of a request because it was decided or its caller has gone.
func (l *Queues) end(ctx context.Context, p *place) Admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &p.result
	switch i := slices.Index(p.queue.list, p); {
	case i >= 0:
		t.Decision, t.at = p.queue.refusal(p.queue.denied.RetryAfter), l.clock()
		l.drop(p.queue, i)
	case ctx.Err() != nil && t.Outcome == ratelimit.Delayed:
		l.refund(p.queue.key, t)
		t.Decision = p.queue.refusal(p.queue.denied.RetryAfter)
	}
	t.Waited, t.Held = max(t.at.Sub(p.came), 0), true
	return *t
}

// drop removes a request from a queue. Requests behind it move up. The timer stays the same.
func (l *Queues) drop(q *queue, i int) {
	l.waiting[kindOf(q.list[i].virtual)]--
	q.list = slices.Delete(q.list, i, i+1)
	q.forecast = nil
	all := l.queues[q.key]
	if at := slices.Index(all, q); len(q.list) == 0 && at >= 0 {
		if l.queues[q.key] = slices.Delete(all, at, at+1); len(all) == 1 {
			delete(l.queues, q.key)
		}
		q.timer.Stop()
	}
}

// Denies is [counting.Counters.Denies] for requests that may wait. It reports whether Take would
// deny a request at once.
func (l *Queues) Denies(k ratelimit.Key, e *ratelimit.Effective) (d ratelimit.Decision, denies bool) {
	now := l.clock()
	d, denies = l.counters.Denies(now, k, e)
	if !e.Waits(k) || e.Mode != ratelimit.Enforce || denies && !waits(&d) {
		return d, denies
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.behind(k, e)
	if q == nil {
		return d, denies && !l.fits(&queue{id: id{key: k}}, e, d.RetryAfter)
	}
	wait := l.nextPass(q, now, e).Sub(now)
	return q.refusal(wait), !l.fits(q, e, wait)
}

// GiveBack refunds a request that got nothing, so the next one in the queue can pass. In dry-run it
// removes its place in the queue. It does nothing for a request that was not counted.
func (l *Queues) GiveBack(k ratelimit.Key, t *Admission) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := t.place; p != nil {
		if i := slices.Index(p.queue.list, p); i >= 0 {
			l.drop(p.queue, i)
			return
		}
		t = &p.result
	}
	if t.Outcome == ratelimit.Allowed || t.Outcome == ratelimit.Delayed {
		l.refund(k, t)
	}
}

// refund refunds a request under the policy that counted it, because another policy may count it
// elsewhere.
func (l *Queues) refund(k ratelimit.Key, t *Admission) {
	l.counters.Refund(l.clock(), t.at, k, t.under, 1)
	for q := range l.standing(k, t.under) {
		q.again = true
		q.timer.Reset(0)
	}
}

// Waiting returns how many requests wait. It excludes dry-run.
func (l *Queues) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[0]
}

// Close denies all waiting requests. After that no request waits.
func (l *Queues) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, q := range slices.Concat(slices.Collect(maps.Values(l.queues))...) {
		now := l.clock()
		f := l.counters.Forecast(now, q.key, q.list[0].policy())
		for len(q.list) > 0 {
			l.settle(q, 0, q.refusal(f.Next().Sub(now)), &Admission{at: now})
			f.Admit()
		}
	}
}
