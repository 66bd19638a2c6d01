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
	perName   = 2 // attempts with one name that are hashed; those of one class that are hashed or in the queue
	perSource = 4 // those from one source
	// linesPerRoom bounds the memory of a lane. It is more than the attempts in the room can need.
	linesPerRoom = 16
)

// BusyError is returned to those for whom a password cannot be hashed soon enough.
type BusyError struct {
	// RetryAfter is when a turn is expected to be free: whole seconds, at least
	// [PasswordOptions].MaxWait.
	RetryAfter time.Duration
	// Starved is whether the attempt had its turn and was not hashed because of [ErrStarved].
	Starved bool
}

// Error implements error.
func (e *BusyError) Error() string {
	if e.Starved {
		return fmt.Sprintf("%v; retry after %s", ErrStarved, e.RetryAfter)
	}
	return fmt.Sprintf("secret: too many passwords are being checked; retry after %s", e.RetryAfter)
}

// turns decides who may hash, and when. The queue takes few attempts of each name and of each source; the
// others are held back, and enter it by turns. So an attempt in the queue waits for few of any user or
// address, however many of them are held back.
//
// Turns are shared between the classes, known and unknown; between the networks of a class, from the widest
// to the sources; and, for those held back, between the names at a source.
//
// If the queue is expected to take too long, or the room is used up, the attempt whose turn would come last
// is refused at once. Those held back are refused when they have waited for so long: a client that repeats
// its attempts does that less often while it waits.
//
// Nothing depends on whether a user of the name exists, unless the attempt is known.
type turns struct {
	atOnce  int // that may hash
	room    int // for each class: in the queue, and as much again for those held back
	maxWait time.Duration

	mu      sync.Mutex
	all     tally
	lanes   [hashing]lane // those held back, and the queue
	tallies map[tallyKey]*tally
	average time.Duration // of one hash, moving; 0 before the first
}

// class is whether an attempt is known.
type class int

const (
	unknown class = iota
	known
)

// classes are the names of their lines, and the rounds that a turn takes.
var classes = [...]struct {
	name   string
	stride int
}{unknown: {"unknown", 3}, known: {"known", 1}} // while both wait, three turns of four are for the known

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
	state   state
	class   class
	names   []string   // of its lines: its class, its networks from the widest to its source, its name there
	path    []*line    // where it waits
	tallies [3]*tally  // of its name, of its source, of all
	turn    chan error // receives nil when it may hash, or why it never may
}

// tally counts the attempts with one name, from one source, or all, by state and class. Those that are there
// are missing among those gone, so it is zero when none is.
type tally struct {
	tallyKey
	count [gone + 1][len(classes)]int
}

type tallyKey struct {
	most int // attempts; it also distinguishes a name from a source
	text string
}

func newTurns(atOnce, room int, maxWait time.Duration) *turns {
	return &turns{
		atOnce: atOnce, room: room, maxWait: maxWait, tallies: map[tallyKey]*tally{},
		lanes: [...]lane{{lines: map[lineKey]*line{}}, {lines: map[lineKey]*line{}}},
	}
}

// acquire waits for a turn, which the caller must release. Errors: *[BusyError], that of ctx.
func (t *turns) acquire(ctx context.Context, a *Attempt) (*waiter, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("secret: wait for a turn: %w", err)
	}
	w, err := t.join(a)
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
func (t *turns) join(a *Attempt) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.arrive(a)
	to := held
	if w.free() {
		to = queued
	}
	if !t.makeRoom(w, to) {
		return nil, t.busy(w)
	}
	t.move(w, held)
	if to == queued {
		t.proceed(w)
	}
	t.advance()
	return w, nil
}

// arrive returns an attempt that does not wait yet.
func (t *turns) arrive(a *Attempt) *waiter {
	w := &waiter{state: gone, tallies: [...]*tally{2: &t.all}, turn: make(chan error, 1)}
	if a.Known {
		w.class = known
	}
	w.names = slices.Concat([]string{classes[w.class].name}, a.Networks, []string{a.Source, a.Name})
	for i, key := range [...]tallyKey{{perName, a.Name}, {perSource, a.Source}} {
		if t.tallies[key] == nil {
			t.tallies[key] = &tally{tallyKey: key}
		}
		w.tallies[i] = t.tallies[key]
	}
	return w
}

// makeRoom reports whether there is room for an attempt. The one whose turn would come last is refused.
func (t *turns) makeRoom(w *waiter, to state) bool {
	if t.all.count[to][w.class] < t.room && (to == held || t.wait(w.class) <= t.maxWait) {
		return true
	}
	t.move(w, to)
	last := t.lanes[to].last(func(o *waiter) bool { return o.class == w.class })
	t.move(last, gone)
	if last != w {
		last.turn <- t.busy(last)
	}
	return last != w
}

// wait returns how long the queue of a class is expected to take, with the turns of the other class
// meanwhile.
func (t *turns) wait(c class) time.Duration {
	n := t.all.count[queued][c]
	n += min(t.all.count[queued][1-c], n*classes[c].stride/classes[1-c].stride)
	return t.average * time.Duration(n) / time.Duration(t.atOnce)
}

func (t *turns) busy(w *waiter) *BusyError {
	seconds := (max(t.maxWait, t.wait(w.class)) + time.Second - 1) / time.Second
	return &BusyError{RetryAfter: seconds * time.Second}
}

// starved returns the error of an attempt that had its turn and was not hashed.
func (t *turns) starved(w *waiter) *BusyError {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.busy(w)
	err.Starved = true
	return err
}

// leave withdraws an attempt, and returns the error of one that has waited long enough.
func (t *turns) leave(w *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.busy(w)
	if w.state != gone {
		t.move(w, gone)
		t.advance()
	}
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
	t.move(w, gone)
	t.advance()
}

// advance admits to the queue those who need not be held back any more, and gives the free turns to the
// first in the queue. Turns had are forgotten when no attempt is left, or to bound the memory.
func (t *turns) advance() {
	admissible := func(w *waiter) bool { return w.free() && t.all.count[queued][w.class] < t.room }
	for w := t.lanes[held].first(admissible); w != nil; w = t.lanes[held].first(admissible) {
		t.proceed(w)
	}
	for t.all.hashing() < t.atOnce {
		w := t.lanes[queued].first((*waiter).hashable)
		if w == nil {
			break
		}
		t.proceed(w)
		w.turn <- nil
	}
	for s := range t.lanes {
		if q := &t.lanes[s]; len(t.tallies) == 0 || len(q.lines) > linesPerRoom*t.room {
			q.forget()
		}
	}
}

// proceed gives an attempt that is held back or in the queue its turn.
func (t *turns) proceed(w *waiter) {
	t.lanes[w.state].turn(w, classes[w.class].stride)
	t.move(w, w.state+1)
}

// move takes an attempt from one state to another.
func (t *turns) move(w *waiter, to state) {
	if w.state < hashing {
		t.lanes[w.state].leave(w)
	}
	if to < hashing {
		t.lanes[to].enter(w, w.names[:len(w.names)-int(to)]) // in the queue, those from one source are in order
	}
	for _, y := range w.tallies {
		y.count[w.state][w.class]--
		y.count[to][w.class]++
		if y.count == (tally{}).count {
			delete(t.tallies, y.tallyKey)
		}
	}
	w.state = to
}

// free reports whether the attempt may be in the queue, for others with its name and from its source.
func (w *waiter) free() bool {
	for _, y := range w.tallies[:2] {
		if y.count[queued][w.class]+y.count[hashing][w.class] >= y.most {
			return false
		}
	}
	return true
}

// hashable reports whether the attempt in the queue may be hashed, for others with its name and from its
// source. The bounds are for both classes together. While attempts of both are there, each class has half.
func (w *waiter) hashable() bool {
	for _, y := range w.tallies[:2] {
		contended := y.count[queued][1-w.class] > 0
		if y.hashing() >= y.most || contended && y.count[hashing][w.class] >= y.most/2 {
			return false
		}
	}
	return true
}

func (y *tally) hashing() int { return y.count[hashing][unknown] + y.count[hashing][known] }
