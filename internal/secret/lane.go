package secret

import (
	"iter"
	"maps"
	"slices"
)

// lane is a fair queue of attempts (start-time fair queuing; Goyal, Vin and Cheng, 1996), shared at
// every level of a tree. A node of the tree is a line. Each line gets one turn per round of its
// parent line, so a line gains no turns by sending more attempts, and the first attempt of another
// line waits for at most one attempt of each sibling.
//
// Rounds only grow. An attempt that is not yet eligible for its turn keeps its round, and is served
// before later ones as soon as it is eligible, but its line gets no extra turns for that.
type lane struct {
	waiting []*waiter // in order of arrival
	root    line
	lines   map[lineKey]*line // all lines except root
}

// line has the attempts of a class, a network, a source, or a name at a source.
type line struct {
	lineKey
	lines int // number of child lines
	count int // number of attempts waiting in it
	next  int // round of its next turn
	round int // round of the last turn of its children
}

// lineKey identifies a line by its parent and its name there.
type lineKey struct {
	in   *line
	name string
}

// enter adds an attempt. names are the names of its lines, from the widest.
func (q *lane) enter(w *waiter, names []string) {
	q.waiting = append(q.waiting, w)
	w.path = nil
	in := &q.root
	for _, name := range names {
		key := lineKey{in, name}
		l := q.lines[key]
		if l == nil {
			l = &line{lineKey: key}
			q.lines[key] = l
			in.lines++
		}
		if l.count == 0 {
			l.next = max(l.next, in.round) // unused turns are not saved up
		}
		l.count++
		w.path = append(w.path, l)
		in = l
	}
}

// turn counts a turn of an attempt that is still in the lane. In its widest line the turn takes the
// given number of rounds, and one round in the others.
func (q *lane) turn(w *waiter, rounds int) {
	for _, l := range w.path {
		l.in.round = max(l.in.round, l.next)
		l.next = l.in.round + rounds
		rounds = 1
	}
}

// leave removes an attempt, and the lines that hold no state. A line that has had its turn in the
// current round is kept, with its parents.
func (q *lane) leave(w *waiter) {
	q.waiting = slices.DeleteFunc(q.waiting, func(o *waiter) bool { return o == w })
	for _, l := range slices.Backward(w.path) {
		l.count--
		if l.count == 0 && l.lines == 0 && l.next <= l.in.round {
			l.in.lines--
			delete(q.lines, l.lineKey)
		}
	}
}

// forget removes all lines without waiting attempts.
func (q *lane) forget() {
	maps.DeleteFunc(q.lines, func(_ lineKey, l *line) bool {
		if l.count > 0 {
			return false
		}
		l.in.lines--
		return true
	})
}

// first returns the next attempt among those that may have a turn, or nil.
func (q *lane) first(may func(*waiter) bool) *waiter {
	return choose(slices.All(q.waiting), may, func(l, m *line) bool { return l.next < m.next })
}

// last returns the attempt with the last turn if no others came. Among equals it returns the
// newest.
func (q *lane) last(of func(*waiter) bool) *waiter {
	return choose(slices.Backward(q.waiting), of, func(l, m *line) bool { return l.next+l.count > m.next+m.count })
}

// choose returns the first attempt in iteration order that beats all others, compared at the lines
// where they differ.
func choose(among iter.Seq2[int, *waiter], ok func(*waiter) bool, beats func(l, m *line) bool) (best *waiter) {
	for _, w := range among {
		if ok(w) && (best == nil || beats(fork(w, best))) {
			best = w
		}
	}
	return best
}

// fork returns the widest lines that two attempts do not share, or the last ones if they share all.
func fork(w, o *waiter) (ofW, ofO *line) {
	i := 0
	for i < min(len(w.path), len(o.path))-1 && w.path[i] == o.path[i] {
		i++
	}
	return w.path[i], o.path[i]
}
