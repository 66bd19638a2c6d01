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

// lookAgain is how long a line waits at most until it looks for what has changed.
const lookAgain = time.Second

// Lines are the requests that wait, by key. They are safe for concurrent use.
type Lines struct {
	counters *ratelimit.Counters
	clock    func() time.Time
	after    func(d time.Duration, f func()) Timer

	mu      sync.Mutex
	lines   map[ratelimit.Key][]*line // by grants, in descending order
	waiting [2]int                    // requests in all lines: those that are held, and those that would be, in dry-run
	closed  bool
}

// New returns empty lines for keys of the counters, whose time clock is.
func New(counters *ratelimit.Counters, clock func() time.Time) *Lines {
	return NewOn(counters, clock, func(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) })
}

// NewOn is [New] on timers of another time than that of this machine, such as a simulated one: after is to them what
// [time.AfterFunc] is to those of package time.
func NewOn(counters *ratelimit.Counters, clock func() time.Time, after func(d time.Duration, f func()) Timer) *Lines {
	return &Lines{counters: counters, clock: clock, after: after, lines: map[ratelimit.Key][]*line{}}
}

// Timer is what the lines need of a [time.Timer] that calls a function.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// id identifies a line: the key and the grants of the limit that its requests wait for, none if that counts all grants.
// So a request does not stand behind those that wait for a limit which does not count it.
type id struct {
	key    ratelimit.Key
	grants ratelimit.Grants
}

// standing returns the lines that a request of the key stands in or behind: those for a limit that counts it.
func (l *Lines) standing(k ratelimit.Key, e *ratelimit.Effective) iter.Seq[*line] {
	return func(yield func(*line) bool) {
		for _, ln := range l.lines[k] {
			if ln.grants.Count(e.Grant()) && !yield(ln) {
				return
			}
		}
	}
}

// behind returns the line that a request of the key stands in or behind; nil if there is none.
func (l *Lines) behind(k ratelimit.Key, e *ratelimit.Effective) *line {
	for ln := range l.standing(k, e) {
		return ln
	}
	return nil
}

// line is the requests of one id that wait.
type line struct {
	id
	list     []*place
	denied   ratelimit.Decision  // the latest on its first request
	mode     ratelimit.Mode      // in which that was decided
	forecast *ratelimit.Forecast // of who comes next, behind the list; nil: to be made
	timer    Timer
	fresh    bool // what other processes have counted was asked for since the latest denial
	serving  bool // a goroutine decides on its first requests
	again    bool // its first request is to be decided again, whatever the present decision on it is
}

// place is a request in a line.
type place struct {
	line    *line
	policy  func() *ratelimit.Effective
	came    time.Time
	virtual bool // in dry-run: nobody waits for the decision
	turn    Turn
	decided func()        // called when there is a turn, unless it is virtual
	done    chan struct{} // closed by it, if the caller has none of its own
}

// Turn is what became of a request.
type Turn struct {
	ratelimit.Decision
	Waited time.Duration // in its line
	Leased time.Duration // for permits of a strict limit, without a line
	// Held is set if it was in a line, or there are no lines any more: a denial of it may come from its caller
	// or this process ending, as opposed to its client asking too often.
	Held  bool
	at    time.Time            // when it was decided
	under *ratelimit.Effective // under which it was
	place *place               // that counts it at its turn, in dry-run; nil: there is none
}

// Own is what of the turn counts against the key itself, as opposed to its source and the total of its client. It is to be
// given back by itself if another key takes its place.
func (t Turn) Own() Turn {
	if t.under != nil {
		t.under = t.under.Own()
	}
	return t
}

// Take decides on one request of the key as [ratelimit.Counters.Await] does. Over the limit it waits for its turn,
// if the policy has it wait: the outcome is then Delayed, or WouldDelay in dry-run, where it does not wait. policy
// returns what applies to the request at the time of the call, the same for all of one key and grant but for the source
// address; it must not block.
//
// A request whose context ends while it waits is denied, and leaves its turn to the next.
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

// Enter is [Lines.Take] without the wait, for callers that have many requests wait. It returns the turn of a request
// that is decided at once; end is then nil. Otherwise it calls decided, once, when the request is; decided must not
// block, nor use the lines. After that, or if the request is not to wait any longer, end returns the turn.
func (l *Lines) Enter(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective, decided func()) (t Turn, end func(context.Context) Turn) {
	p, t := l.enter(ctx, k, policy, decided)
	if p == nil {
		return t, nil
	}
	return t, func(ctx context.Context) Turn { return l.end(ctx, p) }
}

// enter returns the place of a request that waits, or the turn of one that is decided at once. decided is called when the
// former is; nil: its place has a channel for that.
func (l *Lines) enter(ctx context.Context, k ratelimit.Key, policy func() *ratelimit.Effective, decided func()) (*place, Turn) {
	e := policy()
	if !e.Waits(k) {
		return nil, l.Decide(ctx, k, e)
	}
	var first ratelimit.Decision // on the request, if nobody waits
	if !l.has(k, e) {
		t := l.Decide(ctx, k, e)
		if !waits(&t.Decision) || t.RetryAfter > e.Wait.Longest {
			return nil, t
		}
		first = t.Decision
	}
	return l.join(k, e, policy, &first, decided) //nolint:contextcheck // the line is served for all who wait in it
}

// waits reports whether a request that was so decided waits for its turn. Nobody waits for a source or a total: their
// room is taken by requests of other lines of the client, and by those without one, so no line has a turn of its own
// there.
func waits(d *ratelimit.Decision) bool { return d.Over() && !d.OverShared() }

// Decide is [Lines.Take] for a request that does not wait for its turn.
func (l *Lines) Decide(ctx context.Context, k ratelimit.Key, e *ratelimit.Effective) Turn {
	now := l.clock()
	d, waited := l.counters.Await(ctx, now, k, e, 1)
	return Turn{Decision: d, Leased: waited, at: now.Add(waited), under: e}
}

// has reports whether anybody waits whom the request stands behind.
func (l *Lines) has(k ratelimit.Key, e *ratelimit.Effective) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.behind(k, e) != nil
}

// join puts a request into the line of its key. If there is no place, or its turn comes too late, it returns the
// denial; in dry-run the outcome, at once. first is the denial for which it joins, if there was no line.
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
	if ln.mode != e.Mode { // the line has gone since, or the denial is of another mode
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

// until is how long the line lets its first request wait that will have its turn after the wait and must be decided within
// the rest. Where other processes count the key too, they come at different times, so that they do not all take the room
// that there is for one of them, and early enough to be decided with what the others have admitted.
func (l *Lines) until(ln *line, turn, rest time.Duration) time.Duration {
	if spread := ln.forecast.Spread(); spread > 0 {
		turn += rand.N(spread) //nolint:gosec // when it is no secret
		if before := l.counters.RefreshTime(); rest > before {
			rest -= before
		}
	}
	return min(turn, rest, lookAgain)
}

// nextTurn returns when it will be the turn of who comes next.
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

// fits reports whether one more request that waits so long has a place in the line.
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

// kind is the index of a place in Lines.waiting.
func (p *place) kind() int {
	if p.virtual {
		return 1
	}
	return 0
}

// refusal is the denial of a request whose turn would come after the wait.
func (ln *line) refusal(wait time.Duration) ratelimit.Decision {
	d := ln.denied.WithoutSource() // that is the one of the first request
	d.RetryAfter = max(wait, time.Millisecond)
	return d
}

// end is the end of the wait of a request: it was decided, or its caller has gone.
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

// drop removes a request from a line. Those behind it move up; the time of the first one stays the same.
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

// Denies is [ratelimit.Counters.Denies] for requests that may wait: it reports whether Take would deny a request at
// once.
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

// GiveBack gives the turn of a request that got nothing for it to the next: what was counted, or in dry-run its place in
// the line. A request that was not counted has nothing to give back.
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

// refund gives back what was counted, under the policy that counted it: another one may count it elsewhere.
func (l *Lines) refund(k ratelimit.Key, t *Turn) {
	l.counters.Refund(l.clock(), t.at, k, t.under, 1)
	for ln := range l.standing(k, t.under) {
		ln.again = true
		ln.timer.Reset(0)
	}
}

// Waiting is how many requests are held.
func (l *Lines) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[0]
}

// Close denies all requests that wait, and has none wait from now on.
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
