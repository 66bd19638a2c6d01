package secret

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Limits that keep a user or an address from delaying others.
const (
	perName   = 2 // attempts with one name: being hashed, and per class being hashed or queued
	perSource = 4 // the same for attempts from one source
	// groupsPerRoom bounds the memory of a queue. It exceeds the groups that the waiting attempts can
	// need.
	groupsPerRoom = 16
)

// BusyError is returned if a password cannot be hashed soon enough.
type BusyError struct {
	// RetryAfter is when a slot is expected to be free, in whole seconds and at least
	// [PasswordOptions].MaxWait.
	RetryAfter time.Duration
	// Starved is set if the attempt had a slot but was not hashed because of [ErrStarved].
	Starved bool
}

// Error implements error.
func (e *BusyError) Error() string {
	if e.Starved {
		return fmt.Sprintf("%v; retry after %s", ErrStarved, e.RetryAfter)
	}
	return fmt.Sprintf("secret: too many passwords are being checked; retry after %s", e.RetryAfter)
}

// hashQueue decides which attempts are hashed, and when. The queue takes a few attempts of each name
// and of each source. The others are held back and enter the queue by turns. So an attempt in the
// queue waits for only a few attempts of any user or address, however many are held back.
//
// Slots and places in the queue are shared between the classes, known and unknown, then between the
// networks of a class, from the widest down to the sources, and, for attempts held back, between the
// names at a source.
//
// If the queue is expected to take too long, or there is no room left, the attempt that would be
// served last is refused at once. Other attempts are refused after they have waited maxWait. They
// are not refused earlier, because a client that repeats its attempts does so less often while it
// waits.
//
// Nothing depends on whether the user exists, unless the attempt is known.
type hashQueue struct {
	atOnce  int // maximum number of concurrent hashes
	room    int // for each class: maximum in the queue, and the same again held back
	maxWait time.Duration

	mu      sync.Mutex
	all     tally
	waiting [hashing]fairQueue // attempts held back, and the queue
	tallies map[tallyKey]*tally
	average time.Duration // moving average of the time of one hash; 0 before the first
}

// class says whether an attempt is known.
type class int

const (
	unknown class = iota
	known
)

// classes are the names of the classes' groups, and the rounds that serving an attempt takes.
var classes = [...]struct {
	name   string
	stride int
}{unknown: {"unknown", 3}, known: {"known", 1}} // while both wait, known attempts get three of four slots

// state is the progress of an attempt.
type state int

const (
	held state = iota
	queued
	hashing
	gone
)

// waiter is an attempt from arrival to release.
type waiter struct {
	state   state
	class   class
	names   []string   // of its groups: class, networks from the widest, source, name
	path    []*group   // its groups in the current queue
	tallies [3]*tally  // of its name, its source, and all attempts
	ready   chan error // receives nil when it may hash, or the error if it never may
}

// tally counts the attempts with one name, from one source, or all attempts, by state and class.
// Present attempts count negatively in the state gone, so the tally is zero when there are no
// attempts.
type tally struct {
	tallyKey
	count [gone + 1][len(classes)]int
}

type tallyKey struct {
	most int // maximum number of attempts; also distinguishes names from sources
	text string
}

func newHashQueue(atOnce, room int, maxWait time.Duration) *hashQueue {
	return &hashQueue{
		atOnce: atOnce, room: room, maxWait: maxWait, tallies: map[tallyKey]*tally{},
		waiting: [...]fairQueue{{groups: map[groupKey]*group{}}, {groups: map[groupKey]*group{}}},
	}
}

// acquire waits for a slot, which the caller must release. Errors: *[BusyError], the error of ctx.
func (t *hashQueue) acquire(ctx context.Context, a *Attempt) (*waiter, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("secret: wait in queue: %w", err)
	}
	w, err := t.join(a)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(t.maxWait)
	defer patience.Stop()
	select {
	case err := <-w.ready:
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
		return nil, fmt.Errorf("secret: wait in queue: %w", err)
	}
	return nil, late
}

// join adds an attempt to the queue, or holds it back if it may not enter the queue yet.
func (t *hashQueue) join(a *Attempt) (*waiter, error) {
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

// arrive returns a new attempt that is not waiting yet.
func (t *hashQueue) arrive(a *Attempt) *waiter {
	w := &waiter{state: gone, tallies: [...]*tally{2: &t.all}, ready: make(chan error, 1)}
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

// makeRoom makes room for an attempt by refusing the attempt that would be served last. It
// returns false if that is w itself.
func (t *hashQueue) makeRoom(w *waiter, to state) bool {
	if t.all.count[to][w.class] < t.room && (to == held || t.wait(w.class) <= t.maxWait) {
		return true
	}
	t.move(w, to)
	last := t.waiting[to].last(func(o *waiter) bool { return o.class == w.class })
	t.move(last, gone)
	if last != w {
		last.ready <- t.busy(last)
	}
	return last != w
}

// wait returns how long the queue of a class is expected to take, including the slots that go to
// the other class.
func (t *hashQueue) wait(c class) time.Duration {
	n := t.all.count[queued][c]
	n += min(t.all.count[queued][1-c], n*classes[c].stride/classes[1-c].stride)
	return t.average * time.Duration(n) / time.Duration(t.atOnce)
}

func (t *hashQueue) busy(w *waiter) *BusyError {
	seconds := (max(t.maxWait, t.wait(w.class)) + time.Second - 1) / time.Second
	return &BusyError{RetryAfter: seconds * time.Second}
}

// starved returns the error for an attempt that had a slot and was not hashed.
func (t *hashQueue) starved(w *waiter) *BusyError {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.busy(w)
	err.Starved = true
	return err
}

// leave removes an attempt, and returns the error for one that has waited too long.
func (t *hashQueue) leave(w *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.busy(w)
	if w.state != gone {
		t.move(w, gone)
		t.advance()
	}
	return late
}

// release frees a slot. took is the time of the hash, or 0 if nothing was hashed.
func (t *hashQueue) release(w *waiter, took time.Duration) {
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

// advance moves attempts to the queue that no longer have to be held back, and gives free slots to
// the first in the queue. It forgets past rounds when no attempt is left, or to bound the memory.
func (t *hashQueue) advance() {
	admissible := func(w *waiter) bool { return w.free() && t.all.count[queued][w.class] < t.room }
	for w := t.waiting[held].first(admissible); w != nil; w = t.waiting[held].first(admissible) {
		t.proceed(w)
	}
	for t.all.hashing() < t.atOnce {
		w := t.waiting[queued].first((*waiter).hashable)
		if w == nil {
			break
		}
		t.proceed(w)
		w.ready <- nil
	}
	for s := range t.waiting {
		if q := &t.waiting[s]; len(t.tallies) == 0 || len(q.groups) > groupsPerRoom*t.room {
			q.forget()
		}
	}
}

// proceed serves an attempt that is held back or queued: it moves it to the next state.
func (t *hashQueue) proceed(w *waiter) {
	t.waiting[w.state].charge(w, classes[w.class].stride)
	t.move(w, w.state+1)
}

// move changes the state of an attempt.
func (t *hashQueue) move(w *waiter, to state) {
	if w.state < hashing {
		t.waiting[w.state].leave(w)
	}
	if to < hashing {
		t.waiting[to].enter(w, w.names[:len(w.names)-int(to)]) // in the queue, attempts from one source are in order of arrival
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

// free reports whether the attempt may enter the queue, given the others with its name and from its
// source.
func (w *waiter) free() bool {
	for _, y := range w.tallies[:2] {
		if y.count[queued][w.class]+y.count[hashing][w.class] >= y.most {
			return false
		}
	}
	return true
}

// hashable reports whether a queued attempt may be hashed, given the others with its name and from
// its source. The limits are for both classes together. While attempts of both classes wait, each
// class has half.
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
