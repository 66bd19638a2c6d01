package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// rotateEvery is how often labels are reassigned to the busiest clients.
const rotateEvery = time.Minute

// clients gives a bounded number of clients a label: every pinned one, and the busiest others.
// Looking up a client with a label costs a pointer load and a map access.
type clients struct {
	max   int
	other *client
	// table is replaced, never changed. It contains other under "other", so a client of that name
	// is counted there, and under the empty name.
	table atomic.Pointer[map[string]*client]
	votes votes // of clients without a label

	mu       sync.Mutex // held while the table is replaced
	rotated  time.Time
	followed PolicySnapshot // its clients are pinned; nil: none
}

func newClients(most int) *clients {
	c := &clients{max: most, other: &client{label: Other}, votes: votes{most: max(minVotes, 8*most)}}
	c.table.Store(&map[string]*client{Other: c.other, "": c.other})
	return c
}

// of returns the counts for the client ID, or the counts of other, and counts the request for the
// next rotation.
func (c *clients) of(id string) *client {
	table := *c.table.Load()
	if found, ok := table[id]; ok {
		found.hits.Add(1)
		return found
	}
	if labelled(table) < c.max {
		return c.adopt(id)
	}
	c.votes.add(id)
	return c.other
}

// labelled returns the number of clients in the table with a label, without other.
func labelled(table map[string]*client) int { return len(table) - 2 }

// adopt gives the client a label if there is room, and returns its counts or other.
func (c *clients) adopt(id string) *client {
	c.mu.Lock()
	defer c.mu.Unlock()
	table := *c.table.Load()
	if found, ok := table[id]; ok {
		return found
	}
	if labelled(table) >= c.max {
		return c.other
	}
	next := maps.Clone(table)
	added := add(next, id)
	added.hits.Add(1)
	c.table.Store(&next)
	return added
}

func add(table map[string]*client, id string) *client {
	id = strings.Clone(id) // otherwise the label keeps a request's memory alive
	table[id] = &client{label: id}
	return table[id]
}

// follow pins the clients of the current policies, unless they are already pinned, and returns
// these policies. It calls current under the lock, so concurrent scrapes cannot replace the clients
// of newer policies with those from older ones.
func (c *clients) follow(current func() PolicySnapshot) PolicySnapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	policies := current()
	if policies != c.followed {
		c.pin(policies.Clients(c.max))
		c.followed = policies
	}
	return policies
}

// pin gives each of these clients, at most max, a permanent label and unpins all others. While
// there are more than max labels, unpinned clients lose theirs, the least busy first. The caller
// holds mu.
func (c *clients) pin(ids []string) {
	next := maps.Clone(*c.table.Load())
	for _, held := range next {
		held.pinned.Store(false)
	}
	for _, id := range ids {
		held, ok := next[id]
		if !ok {
			held = add(next, id)
		}
		held.pinned.Store(held != c.other)
	}
	rivals := c.rivals(next)
	for labelled(next) > c.max && len(rivals) > 0 {
		delete(next, rivals[0].label)
		rivals = rivals[1:]
	}
	c.table.Store(&next)
}

// rivals returns the unpinned clients with a label, the least busy since the last rotation first.
func (c *clients) rivals(table map[string]*client) []*client {
	var held []*client
	for _, holder := range table {
		if holder != c.other && !holder.pinned.Load() {
			held = append(held, holder)
		}
	}
	slices.SortFunc(held, func(a, b *client) int {
		return cmp.Or(cmp.Compare(a.recentHits(), b.recentHits()), cmp.Compare(b.label, a.label))
	})
	return held
}

// recentHits returns the number of requests since the last rotation.
func (c *client) recentHits() uint64 { return c.hits.Load() - c.seenHits }

// rotate moves labels from quiet clients to busier ones, at most once per rotateEvery. A client
// must be twice as busy as the one it replaces, and at most a tenth of the labels move at once,
// because every move creates new series in Prometheus.
func (c *clients) rotate(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.rotated) < rotateEvery {
		return
	}
	c.rotated = now
	next := maps.Clone(*c.table.Load())
	c.deal(next, c.votes.take())
	for _, held := range next {
		held.seenHits = held.hits.Load()
	}
	c.table.Store(&next)
}

// deal gives free labels, and the labels of quiet clients, to the clients with the most votes.
func (c *clients) deal(table map[string]*client, votes map[string]*uint64) {
	challengers := slices.SortedFunc(maps.Keys(votes), func(a, b string) int {
		return cmp.Or(cmp.Compare(*votes[b], *votes[a]), cmp.Compare(a, b))
	})
	rivals := c.rivals(table)
	rivals = rivals[:min(len(rivals), max(1, c.max/10))]
	for _, challenger := range challengers {
		switch {
		case table[challenger] != nil: // it got a label in the meantime
		case labelled(table) < c.max:
			add(table, challenger)
		case len(rivals) > 0 && *votes[challenger] > 2*rivals[0].recentHits():
			delete(table, rivals[0].label)
			rivals = rivals[1:]
			add(table, challenger)
		default:
			return
		}
	}
}

// all returns every client with its own label, and other at the end.
func (c *clients) all() []*client {
	table := *c.table.Load()
	held := make([]*client, 0, len(table))
	for _, holder := range table {
		if holder != c.other {
			held = append(held, holder)
		}
	}
	return append(held, c.other)
}

// votes finds the busiest of any number of names in bounded memory: once it has the most names, a
// new one takes one vote from every other (Misra and Gries, Finding Repeated Elements, 1982). The
// votes of a name are at most its requests, and close to them if the name is busy.
type votes struct {
	most int
	mu   sync.Mutex
	by   map[string]*uint64
}

// minVotes is the least bound on the number of names.
const minVotes = 1 << 10

// add counts one request of the name.
func (v *votes) add(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch n := v.by[name]; {
	case n != nil:
		*n++
	case len(v.by) < v.most:
		if v.by == nil {
			v.by = map[string]*uint64{}
		}
		v.by[strings.Clone(name)] = new(uint64(1)) // cloned, so that it does not keep a request's memory alive
	default:
		maps.DeleteFunc(v.by, func(_ string, n *uint64) bool { *n--; return *n == 0 })
	}
}

// take returns the votes by name, and starts again.
func (v *votes) take() map[string]*uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	by := v.by
	v.by = nil
	return by
}
