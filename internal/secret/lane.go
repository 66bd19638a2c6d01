package secret

import (
	"iter"
	"maps"
	"slices"
)

// lane is attempts that wait for their turns, which are shared on every level of a tree: a line has one turn
// in each round of the line that it is in (start-time fair queuing; Goyal, Vin and Cheng, 1996). So it gets no
// more turns for sending more, and the first attempt in another line stands behind one of each at most.
//
// Rounds only grow. An attempt that is passed over, because it may not have a turn yet, keeps its round, and
// is served before later ones as soon as it may; but its line has no more turns for that.
type lane struct {
	waiting []*waiter // by arrival
	root    line
	lines   map[lineKey]*line // all others
}

// line is the attempts of a class, a network, a source, or a name at a source.
type line struct {
	lineKey
	lines int // within it
	count int // attempts that wait in it
	next  int // round of its next turn
	round int // of the last turn within it
}

// lineKey identifies a line: the one that it is in, and its name there.
type lineKey struct {
	in   *line
	name string
}

// enter adds an attempt. names are of its lines, from the widest.
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
			l.next = max(l.next, in.round) // no turns are saved up
		}
		l.count++
		w.path = append(w.path, l)
		in = l
	}
}

// turn counts a turn of an attempt, which has yet to leave. In the widest line it takes so many rounds.
func (q *lane) turn(w *waiter, rounds int) {
	for _, l := range w.path {
		l.in.round = max(l.in.round, l.next)
		l.next = l.in.round + rounds
		rounds = 1
	}
}

// leave removes an attempt, and the lines that are as good as new. Those that have had their turn of the
// round are kept, and so is what they are in.
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

// forget removes all lines that nothing waits in.
func (q *lane) forget() {
	maps.DeleteFunc(q.lines, func(_ lineKey, l *line) bool {
		if l.count > 0 {
			return false
		}
		l.in.lines--
		return true
	})
}

// first returns the attempt whose turn it is, of those that may have one; nil if there is none.
func (q *lane) first(may func(*waiter) bool) *waiter {
	return choose(slices.All(q.waiting), may, func(l, m *line) bool { return l.next < m.next })
}

// last returns the attempt whose turn would come last if no more came; of equals the newest.
func (q *lane) last(of func(*waiter) bool) *waiter {
	return choose(slices.Backward(q.waiting), of, func(l, m *line) bool { return l.next+l.count > m.next+m.count })
}

// choose returns the first attempt of those in the line that beats all others, on each level.
func choose(among iter.Seq2[int, *waiter], ok func(*waiter) bool, beats func(l, m *line) bool) (best *waiter) {
	for _, w := range among {
		if ok(w) && (best == nil || beats(fork(w, best))) {
			best = w
		}
	}
	return best
}

// fork returns the widest lines that two attempts do not share, or the last that they do.
func fork(w, o *waiter) (ofW, ofO *line) {
	i := 0
	for i < min(len(w.path), len(o.path))-1 && w.path[i] == o.path[i] {
		i++
	}
	return w.path[i], o.path[i]
}
