package secret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// The bounds that keep a user or an address from delaying others. They hold for attempts of one class,
// known or not.
const (
	perName   = 2 // attempts with one name that are hashed or in the queue
	perSource = 4 // those from one source
	// While both wait, three turns of four are for known attempts.
	knownStride, unknownStride = 1, 3
	// linesPerRoom bounds the memory. It is more than the attempts in all the room can need.
	linesPerRoom = 32
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

// turns decides who may hash, and when. The queue takes few attempts of each name and of each source; the
// others are held back, and enter it by turns. So an attempt in the queue waits for few of any user or
// address, however many of them are held back.
//
// Turns are shared on every level of a tree: between the classes, known and unknown; between the networks
// of a class, from the widest to the sources; and, for those held back, between the names at a source. What
// is served next is found by start-time fair queuing (Goyal, Vin and Cheng, 1996). So a network gets no
// more turns for sending more, and the first attempt of another one stands behind one of each at most.
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
	running int
	waiting [hashing][]*waiter // those held back and the queue, by arrival
	root    line               // of the classes
	classes map[bool]*line     // of the known, of the unknown
	lines   map[lineKey]*line  // of networks, sources and names
	average time.Duration      // of one hash, moving; 0 before the first
}

// state is where an attempt is.
type state int

const (
	held state = iota
	queued
	hashing
	arriving
	gone
)

// waiter is an attempt on its way to a turn.
type waiter struct {
	state  state
	path   []*line    // its class, its networks from the widest to its source, its name there
	source *line      // that in path
	name   *line      // at all sources
	turn   chan error // receives nil when it may hash, or why it never may
}

// lineKey is a class and, within it, a network, a source, a name, or a name at a source.
type lineKey struct {
	known       bool
	kind        byte
	place, name string
}

// line counts the attempts of a class, network, source or name.
type line struct {
	key    lineKey
	count  [gone]int    // by state
	stride int          // rounds that a turn takes
	next   [hashing]int // round of its next turn, among those held back and in the queue
	round  [hashing]int // of the last turn in it
}

func newTurns(atOnce, room int, maxWait time.Duration) *turns {
	return &turns{
		atOnce: atOnce, room: room, maxWait: maxWait, lines: map[lineKey]*line{},
		classes: map[bool]*line{true: {stride: knownStride}, false: {stride: unknownStride}},
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
		late := t.busy(w)
		t.remove(w)
		return nil, late
	}
	t.exit(w)
	t.enter(w, held)
	if to == queued {
		t.proceed(w)
	}
	t.advance()
	return w, nil
}

// arrive returns an attempt that is not in the queue yet.
func (t *turns) arrive(a *Attempt) *waiter {
	line := func(kind byte, place, name string) *line {
		key := lineKey{a.Known, kind, place, name}
		l := t.lines[key]
		if l == nil {
			l = &line{key: key, stride: 1}
			t.lines[key] = l
		}
		return l
	}
	w := &waiter{turn: make(chan error, 1), source: line('s', a.Source, ""), name: line('n', "", a.Name)}
	w.path = append(w.path, t.classes[a.Known])
	for _, network := range a.Networks {
		w.path = append(w.path, line('w', network, ""))
	}
	w.path = append(w.path, w.source, line('&', a.Source, a.Name))
	t.enter(w, arriving)
	return w
}

// makeRoom reports whether there is room for an attempt. The one whose turn would come last is refused for
// one whose turn would come before.
func (t *turns) makeRoom(w *waiter, to state) bool {
	class := w.path[0]
	if class.count[to] < t.room && (to == held || t.wait(class) <= t.maxWait) {
		return true
	}
	var last *waiter
	for _, o := range slices.Backward(t.waiting[to]) {
		if o.path[0] == class && (last == nil || o.after(last, to, 0)) {
			last = o
		}
	}
	if last == nil || !last.after(w, to, 1) {
		return false
	}
	last.turn <- t.busy(last)
	t.remove(last)
	return true
}

// wait returns how long the queue of a class is expected to take, with the turns of the other class
// meanwhile.
func (t *turns) wait(class *line) time.Duration {
	other := t.classes[class == t.classes[false]]
	n := class.count[queued]
	n += min(other.count[queued], n*class.stride/other.stride)
	return t.average * time.Duration(n) / time.Duration(t.atOnce)
}

func (t *turns) busy(w *waiter) *BusyError {
	seconds := (max(t.maxWait, t.wait(w.path[0])) + time.Second - 1) / time.Second
	return &BusyError{RetryAfter: seconds * time.Second}
}

// leave withdraws an attempt, and returns the error of one that has waited long enough.
func (t *turns) leave(w *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.busy(w)
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

// advance admits to the queue those who need not be held back any more, and gives the free turns to the
// first in the queue.
func (t *turns) advance() {
	admissible := func(w *waiter) bool { return w.free() && w.path[0].count[queued] < t.room }
	for w := t.first(held, admissible); w != nil; w = t.first(held, admissible) {
		t.proceed(w)
	}
	for t.running < t.atOnce && len(t.waiting[queued]) > 0 {
		w := t.first(queued, func(*waiter) bool { return true })
		t.proceed(w)
		w.turn <- nil
	}
}

// first returns the one whose turn it is, of those with ok; nil if there is none.
func (t *turns) first(s state, ok func(*waiter) bool) (first *waiter) {
	for _, w := range t.waiting[s] {
		if ok(w) && (first == nil || w.before(first, s)) {
			first = w
		}
	}
	return first
}

// proceed gives an attempt that is held back or in the queue its turn.
func (t *turns) proceed(w *waiter) {
	s, in := w.state, &t.root
	for _, l := range w.levels(s) {
		in.round[s] = l.next[s]
		l.next[s] += l.stride
		in = l
	}
	t.exit(w)
	t.enter(w, s+1)
}

func (t *turns) enter(w *waiter, s state) {
	w.state = s
	w.add(s, 1)
	switch s {
	case held, queued:
		t.waiting[s] = append(t.waiting[s], w)
		in := &t.root
		for _, l := range w.levels(s) {
			l.next[s] = max(l.next[s], in.round[s]) // no turns are saved up
			in = l
		}
	case hashing:
		t.running++
	case arriving, gone:
	}
}

func (t *turns) exit(w *waiter) {
	switch s := w.state; s {
	case held, queued:
		t.waiting[s] = slices.DeleteFunc(t.waiting[s], func(o *waiter) bool { return o == w })
	case hashing:
		t.running--
	case arriving, gone:
	}
	w.add(w.state, -1)
	w.state = gone
}

// remove takes an attempt away from where it is, and the lines that nothing stands in any more. Those that
// have had their turn of the round are kept while others wait, unless there are too many.
func (t *turns) remove(w *waiter) {
	if w.state == gone {
		return
	}
	t.exit(w)
	in := w.path[0]
	for _, l := range append(w.path[1:], w.name) {
		if l.empty() && l.next[held] <= in.round[held] && l.next[queued] <= in.round[queued] {
			delete(t.lines, l.key)
		}
		in = l
	}
	idle := t.running == 0 && len(t.waiting[held]) == 0 && len(t.waiting[queued]) == 0
	if idle || len(t.lines) > linesPerRoom*t.room {
		maps.DeleteFunc(t.lines, func(_ lineKey, l *line) bool { return l.empty() })
	}
}

func (l *line) empty() bool { return l.count == [gone]int{} }

func (w *waiter) add(s state, n int) {
	for _, l := range w.path {
		l.count[s] += n
	}
	w.name.count[s] += n
}

// free reports whether the attempt may be in the queue.
func (w *waiter) free() bool { return w.name.active() < perName && w.source.active() < perSource }

func (l *line) active() int { return l.count[queued] + l.count[hashing] }

// levels are the lines that turns are shared by. In the queue, those from one source are served in order.
func (w *waiter) levels(s state) []*line { return w.path[:len(w.path)-int(s)] }

// before reports whether it has its turn before one that arrived earlier.
func (w *waiter) before(o *waiter, s state) bool {
	l, m := w.fork(o, s)
	return l.next[s] < m.next[s]
}

// after reports whether the network of w, where it differs from that of o, has its last turn in a later
// round, after so many more of o.
func (w *waiter) after(o *waiter, s state, more int) bool {
	l, m := w.fork(o, s)
	return l.next[s]+l.count[s] > m.next[s]+m.count[s]+more
}

// fork returns the widest lines that the attempts do not share, or the last that they do.
func (w *waiter) fork(o *waiter, s state) (ofW, ofO *line) {
	levels, others := w.levels(s), o.levels(s)
	i := 0
	for i < min(len(levels), len(others))-1 && levels[i] == others[i] {
		i++
	}
	return levels[i], others[i]
}
