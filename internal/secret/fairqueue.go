package secret

import (
	"iter"
	"maps"
	"slices"
)

// fairQueue is a fair queue of attempts (start-time fair queuing; Goyal, Vin and Cheng, 1996), shared
// at every level of a tree. A node of the tree is a group. Each group is served once per round of its
// parent group, so a group gains nothing by sending more attempts, and the first attempt of another
// group waits for at most one attempt of each sibling.
//
// Rounds only grow. An attempt that is not yet eligible keeps its round, and is served before later ones
// as soon as it is eligible, but its group is not served more often for that.
type fairQueue struct {
	waiting []*waiter // in order of arrival
	root    group
	groups  map[groupKey]*group // all groups except root
}

// group has the attempts of a class, a network, a source, or a name at a source.
type group struct {
	groupKey
	groups int // number of child groups
	count  int // number of attempts waiting in it
	next   int // its next round
	round  int // the latest round of its children
}

// groupKey identifies a group by its parent and its name there.
type groupKey struct {
	in   *group
	name string
}

// enter adds an attempt. names are the names of its groups, from the widest.
func (q *fairQueue) enter(w *waiter, names []string) {
	q.waiting = append(q.waiting, w)
	w.path = nil
	in := &q.root
	for _, name := range names {
		key := groupKey{in, name}
		l := q.groups[key]
		if l == nil {
			l = &group{groupKey: key}
			q.groups[key] = l
			in.groups++
		}
		if l.count == 0 {
			l.next = max(l.next, in.round) // unused rounds are not saved up
		}
		l.count++
		w.path = append(w.path, l)
		in = l
	}
}

// charge records that an attempt, which is still in the queue, is served. In its widest group that
// takes the given number of rounds, and one round in the others.
func (q *fairQueue) charge(w *waiter, rounds int) {
	for _, l := range w.path {
		l.in.round = max(l.in.round, l.next)
		l.next = l.in.round + rounds
		rounds = 1
	}
}

// leave removes an attempt, and the groups that hold no state. A group that was served in the
// current round is kept, with its parents.
func (q *fairQueue) leave(w *waiter) {
	q.waiting = slices.DeleteFunc(q.waiting, func(o *waiter) bool { return o == w })
	for _, l := range slices.Backward(w.path) {
		l.count--
		if l.count == 0 && l.groups == 0 && l.next <= l.in.round {
			l.in.groups--
			delete(q.groups, l.groupKey)
		}
	}
}

// forget removes all groups without waiting attempts.
func (q *fairQueue) forget() {
	maps.DeleteFunc(q.groups, func(_ groupKey, l *group) bool {
		if l.count > 0 {
			return false
		}
		l.in.groups--
		return true
	})
}

// first returns the next attempt among those that may be served, or nil.
func (q *fairQueue) first(may func(*waiter) bool) *waiter {
	return choose(slices.All(q.waiting), may, func(l, m *group) bool { return l.next < m.next })
}

// last returns the attempt that is served last if no others come. Among equals it returns the
// newest.
func (q *fairQueue) last(of func(*waiter) bool) *waiter {
	return choose(slices.Backward(q.waiting), of, func(l, m *group) bool { return l.next+l.count > m.next+m.count })
}

// choose returns the first attempt in iteration order that beats all others, compared at the groups
// where they differ.
func choose(among iter.Seq2[int, *waiter], ok func(*waiter) bool, beats func(l, m *group) bool) (best *waiter) {
	for _, w := range among {
		if ok(w) && (best == nil || beats(fork(w, best))) {
			best = w
		}
	}
	return best
}

// fork returns the widest groups that two attempts do not share, or the last ones if they share all.
func fork(w, o *waiter) (ofW, ofO *group) {
	i := 0
	for i < min(len(w.path), len(o.path))-1 && w.path[i] == o.path[i] {
		i++
	}
	return w.path[i], o.path[i]
}
