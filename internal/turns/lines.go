package turns

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
)

// lookAgain is the longest time for which a queue does not check for changes.
const lookAgain = time.Second

// Lines are the queues of waiting requests, by key. They are safe for concurrent use.
type Lines struct {
	counters *ratelimit.Counters
	clock    func() time.Time
	after    func(d time.Duration, f func()) Timer

	mu      sync.Mutex
	lines   map[ratelimit.Key][]*line // requests in all queues: those that wait, and those that would wait, in dry-run
	waiting [2]int                    // requests in all lines: those that are held, and those that would be, in dry-run
	closed  bool
}

// New returns empty queues for keys of the counters. clock must be the clock of the counters.
func New(counters *ratelimit.Counters, clock func() time.Time) *Lines {
	return NewOn(counters, clock, func(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) })
}

// NewOn is [New] with other timers, for example simulated ones. after replaces [time.AfterFunc].
func NewOn(counters *ratelimit.Counters, clock func() time.Time, after func(d time.Duration, f func()) Timer) *Lines {
	return &Lines{counters: counters, clock: clock, after: after, lines: map[ratelimit.Key][]*line{}}
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
func (l *Lines) standing(k ratelimit.Key, e *ratelimit.Effective) iter.Seq[*line] {
	return func(yield func(*line) bool) {
		for _, ln := range l.lines[k] {
			if ln.grants.Count(e.Grant()) && !yield(ln) {
				return
			}
		}
	}
}

// behind returns the queue that a request of the key waits in or behind, or nil.
func (l *Lines) behind(k ratelimit.Key, e *ratelimit.Effective) *line {
	for ln := range l.standing(k, e) {
		return ln
	}
	return nil
}

// line is the queue of the waiting requests of one id.
type line struct {
	id
	list     []*place
	denied   ratelimit.Decision  // latest denial of its first request
	mode     ratelimit.Mode      // mode of that denial
	forecast *ratelimit.Forecast // for the next new request, behind the list; nil: to be created
	timer    Timer
	fresh    bool // the counts of other processes were requested since the latest denial
	serving  bool // a goroutine is deciding its first requests
	again    bool // decide the first request again after the present decision, whatever that is
}

// place is a request in a queue.
type place struct {
	line    *line
	policy  func() *ratelimit.Effective
	came    time.Time
	virtual bool // in dry-run: no caller waits for the decision
	turn    Turn
	decided func()        // called when turn is final, unless the place is virtual
	done    chan struct{} // closed by decided, unless the caller has its own decided
}

// Turn is the decision on a request, and how long it waited.
type Turn struct {
	ratelimit.Decision
	Waited time.Duration // in its queue
	Leased time.Duration // for permits of a strict limit, without a queue
	// Held is set if the request was in a queue, or if the queues are closed. Its denial may then
	// be due to the caller or this process ending, and not to a client that asks too often.
	Held  bool
	at    time.Time            // when it was decided
	under *ratelimit.Effective // limits under which it was decided
	place *place               // the place that counts it later, in dry-run; nil: none
}

// Own returns the part of the turn that counts against the key itself, without its source and
// total. Give this part back separately if the request moves to another key.
func (t Turn) Own() Turn {
	if t.under != nil {
		t.under = t.under.Own()
	}
	return t
}

// Take decides on one request of the key like [ratelimit.Counters.Await]. If the request is over
// the limit and its policy allows waiting, it waits in a queue until it passes. The outcome is then
// Delayed. In dry-run the outcome is WouldDelay and it does not wait. policy returns the limits for
// the request at the time of the call. Apart from the source address they must be the same for all
// requests with one key and grant. policy must not block.
//
// If the context ends while the request waits, the request is denied and its place goes to the next
// one.
func (l *Lines) Take(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective) Turn {
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

// Enter is [Lines.Take] without the wait, for callers that have many waiting requests. If the
// request is decided at once, Enter returns its turn, and end is nil. Otherwise it calls decided
// once when the request is decided. decided must not block or use the queues. Call end after that,
// or to stop waiting. It returns the turn.
func (l *Lines) Enter(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective, decided func()) (t Turn, end func(context.Context) Turn) {
	p, t := l.enter(ctx, k, policy, decided)
	if p == nil {
		return t, nil
	}
	return t, func(ctx context.Context) Turn { return l.end(ctx, p) }
}

// enter returns the place of a waiting request, or the turn of a request that is decided at once.
// decided is called when the waiting request is decided. If it is nil, the place gets a channel
// instead.
func (l *Lines) enter(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective, decided func()) (*place, Turn) {
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
	return l.join(k, e, policy, &first, decided) //nolint:contextcheck // the line is served for all who wait in it
}

// waits reports whether a request with this decision waits. Requests never wait for a source or a
// total. Requests of other queues of the client, and requests without a queue, use the same room,
// so no queue could predict it.
func waits(d *ratelimit.Decision) bool { return d.Over() && !d.OverShared() }

// Decide is [Lines.Take] for a request that must not wait in a queue.
func (l *Lines) Decide(ctx context.Context, k ratelimit.Key, e *ratelimit.Effective) Turn {
	now := l.clock()
	d, waited := l.counters.Await(ctx, now, k, e, 1)
	return Turn{Decision: d, Leased: waited, at: now.Add(waited), under: e}
}

// has reports whether any request waits that this one would have to wait behind.
func (l *Lines) has(k ratelimit.Key, e *ratelimit.Effective) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.behind(k, e) != nil
}

// join adds a request to the queue of its key. If there is no free place, or the request would pass
// too late, it returns the denial. In dry-run it returns the outcome at once. first is the denial
// that made the request join, if there was no queue.
func (l *Lines) join(k ratelimit.Key, e *ratelimit.Effective, policy func() *ratelimit.Effective, first *ratelimit.Decision, decided func()) (p *place, at Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	ln := l.behind(k, e)
	if ln == nil {
		binding, _ := first.BindingLimit()
		ln = &line{id: id{k, binding.Limit.Grants}}
		if first.Counted() {
			ln.denied, ln.mode = *first, e.Mode
		}
	}
	if ln.mode != e.Mode { // the queue has ended since, or the denial is of another mode
		d := l.counters.Take(now, k, e, 1)
		if !waits(&d) {
			return nil, Turn{Decision: d, at: now, under: e}
		}
		ln.denied, ln.mode = d, e.Mode
	}
	turn := l.nextTurn(ln, now, e)
	if !l.fits(ln, e, turn.Sub(now)) {
		return nil, Turn{Decision: ln.refusal(turn.Sub(now)), Held: l.closed, at: now}
	}
	p = &place{line: ln, policy: policy, came: now, virtual: e.Mode == ratelimit.DryRun, decided: decided}
	if decided == nil {
		p.done = make(chan struct{})
		p.decided = func() { close(p.done) }
	}
	ln.forecast.Admit()
	ln.list = append(ln.list, p)
	l.waiting[p.kind()]++
	if ln.timer == nil {
		all := l.lines[k]
		at, _ := slices.BinarySearchFunc(all, ln, func(a, b *line) int { return cmp.Compare(b.grants, a.grants) })
		l.lines[k] = slices.Insert(all, at, ln)
		ln.timer = l.after(l.until(ln, turn.Sub(now), e.Wait.Longest), func() { l.serve(ln) })
	}
	if p.virtual {
		d := ln.denied
		d.Outcome, d.RetryAfter = ratelimit.WouldDelay, 0
		return nil, Turn{Decision: d, at: now, place: p}
	}
	return p, Turn{}
}

// until returns how long to wait before the first request is decided. turn is the predicted wait.
// rest is the time left for the request. If other processes count the key too, the wait is random,
// so that they do not all compete for the room of one request. It is also short enough to decide
// with the counts of the others.
func (l *Lines) until(ln *line, turn, rest time.Duration) time.Duration {
	if spread := ln.forecast.Spread(); spread > 0 {
		turn += rand.N(spread) //nolint:gosec // needs no secrecy
		if before := l.counters.RefreshTime(); rest > before {
			rest -= before
		}
	}
	return min(turn, rest, lookAgain)
}

// nextTurn returns when the next new request will pass.
func (l *Lines) nextTurn(ln *line, now time.Time, e *ratelimit.Effective) time.Time {
	if ln.forecast == nil {
		ln.forecast = l.counters.Forecast(now, ln.key, e)
		for range ln.list {
			ln.forecast.Admit()
		}
	}
	if turn := ln.forecast.Next(); turn.After(now) {
		return turn
	}
	return now
}

// fits reports whether the queue has a place for one more request that waits this long.
func (l *Lines) fits(ln *line, e *ratelimit.Effective, wait time.Duration) bool {
	kind := 0
	if e.Mode == ratelimit.DryRun {
		kind = 1
	}
	places := 0
	for _, other := range l.lines[ln.key] {
		places += len(other.list)
	}
	return !l.closed && wait <= e.Wait.Longest && places < e.Wait.AtOnce && l.waiting[kind] < ratelimit.MaxWaiting
}

// kind returns the index of a place in Lines.waiting.
func (p *place) kind() int {
	if p.virtual {
		return 1
	}
	return 0
}

// refusal returns the denial of a request that would pass only after the wait.
func (ln *line) refusal(wait time.Duration) ratelimit.Decision {
	d := ln.denied.WithoutSource() // the source is the one of the first request
	d.RetryAfter = max(wait, time.Millisecond)
	return d
}

// end ends the wait of a request because it was decided or its caller has gone.
func (l *Lines) end(ctx context.Context, p *place) Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &p.turn
	switch i := slices.Index(p.line.list, p); {
	case i >= 0:
		t.Decision, t.at = p.line.refusal(p.line.denied.RetryAfter), l.clock()
		l.drop(p.line, i)
	case ctx.Err() != nil && t.Outcome == ratelimit.Delayed:
		l.refund(p.line.key, t)
		t.Decision = p.line.refusal(p.line.denied.RetryAfter)
	}
	t.Waited, t.Held = max(t.at.Sub(p.came), 0), true
	return *t
}

// drop removes a request from a queue. Requests behind it move up. The timer stays the same.
func (l *Lines) drop(ln *line, i int) {
	l.waiting[ln.list[i].kind()]--
	ln.list = slices.Delete(ln.list, i, i+1)
	ln.forecast = nil
	all := l.lines[ln.key]
	if at := slices.Index(all, ln); len(ln.list) == 0 && at >= 0 {
		if l.lines[ln.key] = slices.Delete(all, at, at+1); len(all) == 1 {
			delete(l.lines, ln.key)
		}
		ln.timer.Stop()
	}
}

// Denies is [ratelimit.Counters.Denies] for requests that may wait. It reports whether Take would
// deny a request at once.
func (l *Lines) Denies(k ratelimit.Key, e *ratelimit.Effective) (d ratelimit.Decision, denies bool) {
	now := l.clock()
	d, denies = l.counters.Denies(now, k, e)
	if !e.Waits(k) || e.Mode != ratelimit.Enforce || denies && !waits(&d) {
		return d, denies
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.behind(k, e)
	if ln == nil {
		return d, denies && !l.fits(&line{id: id{key: k}}, e, d.RetryAfter)
	}
	wait := l.nextTurn(ln, now, e).Sub(now)
	return ln.refusal(wait), !l.fits(ln, e, wait)
}

// GiveBack refunds a request that got nothing, so the next one in the queue can pass. In dry-run it
// removes its place in the queue. It does nothing for a request that was not counted.
func (l *Lines) GiveBack(k ratelimit.Key, t *Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := t.place; p != nil {
		if i := slices.Index(p.line.list, p); i >= 0 {
			l.drop(p.line, i)
			return
		}
		t = &p.turn
	}
	if t.Outcome == ratelimit.Allowed || t.Outcome == ratelimit.Delayed {
		l.refund(k, t)
	}
}

// refund refunds a request under the policy that counted it, because another policy may count it
// elsewhere.
func (l *Lines) refund(k ratelimit.Key, t *Turn) {
	l.counters.Refund(l.clock(), t.at, k, t.under, 1)
	for ln := range l.standing(k, t.under) {
		ln.again = true
		ln.timer.Reset(0)
	}
}

// Waiting returns how many requests wait. It excludes dry-run.
func (l *Lines) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[0]
}

// Close denies all waiting requests. After that no request waits.
func (l *Lines) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, ln := range slices.Concat(slices.Collect(maps.Values(l.lines))...) {
		now := l.clock()
		f := l.counters.Forecast(now, ln.key, ln.list[0].policy())
		for len(ln.list) > 0 {
			l.settle(ln, 0, ln.refusal(f.Next().Sub(now)), &Turn{at: now})
			f.Admit()
		}
	}
}
