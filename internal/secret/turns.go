package secret

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The bounds that keep a user or an address from delaying others.
const (
	perName   = 2 // attempts with one name that are hashed or in the queue
	perSource = 4 // those from one source
)

// BusyError is returned to those for whom a password cannot be hashed soon enough.
type BusyError struct {
	// RetryAfter is when a turn is expected to be free: whole seconds, at least
	// [PasswordOptions].MaxWait.
	RetryAfter time.Duration
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("secret: too many passwords are being checked; retry after %s", e.RetryAfter)
}

// turns decides who may hash, and when. The queue is served in order. It takes few attempts of each
// name and of each source; the others are held back. So an attempt in the queue waits for few of any
// user or address, however many of them are held back.
//
// Of those held back, the attempts with one name from one source stand behind each other, and such
// lines are served by turns: start-time fair queuing (Goyal, Vin and Cheng, 1996). So a user's
// first attempt stands behind no flood, be it with the same name or from the same address.
//
// Those who would wait in the queue for too long are refused at once. Those held back are refused when
// they have waited for so long: a client that repeats its attempts does that less often while it waits.
//
// Nothing depends on whether a user of the name exists.
type turns struct {
	atOnce  int // that may hash
	room    int // in the queue, and as much again for those held back
	maxWait time.Duration

	mu      sync.Mutex
	running int
	queue   []*waiter // the next to hash, in order
	held    []*waiter // by round, and in a round by arrival
	round   int       // of the last that was admitted to the queue
	lines   map[lineKey]*line
	average time.Duration // of one hash, moving; 0 before the first
}

// state is where an attempt is.
type state int

const (
	held state = iota
	queued
	hashing
	gone
)

// waiter is an attempt on its way to a turn.
type waiter struct {
	state state
	lines [3]*line   // of the name and the source, of the name, of the source
	round int        // in which its line is served by turns
	turn  chan error // receives nil when it may hash, or why it never may
}

// lineKey is a name and a source, or one of them.
type lineKey struct {
	name, source string
	kind         byte
}

// line counts the attempts with one name, from one source, or both. It is kept while there are any.
type line struct {
	key    lineKey
	most   int // active at once
	active int // in the queue or hashing
	held   int
	next   int // round of the next
}

// acquire waits for a turn, which the caller must release. Errors: *[BusyError], that of ctx.
func (t *turns) acquire(ctx context.Context, name, source string) (*waiter, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("secret: wait for a turn: %w", err)
	}
	w, err := t.join(name, source)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(t.maxWait)
	defer patience.Stop()
	select {
	case err := <-w.turn:
		if err != nil {
			return nil, err
		}
		if ctx.Err() == nil {
			return w, nil
		}
	case <-patience.C:
	case <-ctx.Done():
	}
	late := t.leave(w)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("secret: wait for a turn: %w", err)
	}
	return nil, late
}

// join adds an attempt to the queue, or to those held back if it may not be there yet.
func (t *turns) join(name, source string) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{turn: make(chan error, 1), lines: [3]*line{
		t.line(lineKey{name, source, '&'}, perName),
		t.line(lineKey{name, "", 'n'}, perName),
		t.line(lineKey{"", source, 's'}, perSource),
	}}
	both := w.lines[0]
	w.round = max(t.round, both.next)
	if !t.makeRoom(w) {
		t.forget(w)
		return nil, t.busy()
	}
	both.next = w.round + 1
	t.held = slices.Insert(t.held, t.before(w), w)
	w.count(0, 1)
	t.advance()
	return w, nil
}

// line returns the line of a key.
func (t *turns) line(key lineKey, most int) *line {
	l := t.lines[key]
	if l == nil {
		l = &line{key: key, most: most}
		t.lines[key] = l
	}
	return l
}

// before returns how many of those held back go first.
func (t *turns) before(w *waiter) int {
	i := slices.IndexFunc(t.held, func(h *waiter) bool { return h.round > w.round })
	if i < 0 {
		return len(t.held)
	}
	return i
}

// makeRoom reports whether there is room for an attempt. The last of those held back is refused for one
// that goes before it.
func (t *turns) makeRoom(w *waiter) bool {
	switch {
	case w.free():
		return len(t.queue) < t.room && t.wait() <= t.maxWait
	case len(t.held) < t.room:
		return true
	case t.before(w) == len(t.held):
		return false
	}
	last := t.held[len(t.held)-1]
	last.turn <- t.busy()
	t.remove(last)
	return true
}

// wait returns how long the queue is expected to take.
func (t *turns) wait() time.Duration {
	return t.average * time.Duration(len(t.queue)) / time.Duration(t.atOnce)
}

func (t *turns) busy() *BusyError {
	seconds := (max(t.maxWait, t.wait()) + time.Second - 1) / time.Second
	return &BusyError{RetryAfter: seconds * time.Second}
}

// leave withdraws an attempt, and returns the error of one that has waited long enough.
func (t *turns) leave(w *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.busy()
	t.remove(w)
	t.advance()
	return late
}

// release gives a turn back. took is how long the hash took, 0 if nothing was hashed.
func (t *turns) release(w *waiter, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.average == 0:
		t.average = took
	case took > 0:
		t.average += (took - t.average) / 8
	}
	t.remove(w)
	t.advance()
}

// remove takes an attempt away from where it is.
func (t *turns) remove(w *waiter) {
	same := func(other *waiter) bool { return other == w }
	switch w.state {
	case held:
		t.held = slices.DeleteFunc(t.held, same)
		w.count(0, -1)
	case queued:
		t.queue = slices.DeleteFunc(t.queue, same)
		w.count(-1, 0)
	case hashing:
		t.running--
		w.count(-1, 0)
	case gone:
	}
	w.state = gone
	t.forget(w)
}

// forget removes the lines that nothing stands in.
func (t *turns) forget(w *waiter) {
	for _, l := range w.lines {
		if l.active+l.held == 0 {
			delete(t.lines, l.key)
		}
	}
}

// advance admits to the queue those who need not be held back any more, and gives the free turns to the
// first in the queue.
func (t *turns) advance() {
	t.held = slices.DeleteFunc(t.held, func(w *waiter) bool {
		if !w.free() {
			return false
		}
		w.state = queued
		w.count(1, -1)
		t.round = max(t.round, w.round)
		t.queue = append(t.queue, w)
		return true
	})
	for t.running < t.atOnce && len(t.queue) > 0 {
		t.queue[0].state = hashing
		t.queue[0].turn <- nil
		t.queue = slices.Delete(t.queue, 0, 1)
		t.running++
	}
}

// free reports whether the attempt may be in the queue.
func (w *waiter) free() bool {
	return !slices.ContainsFunc(w.lines[:], func(l *line) bool { return l.active >= l.most })
}

func (w *waiter) count(active, held int) {
	for _, l := range w.lines {
		l.active += active
		l.held += held
	}
}
