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

// rotateEvery is how often the labels are dealt anew to the busiest.
const rotateEvery = time.Minute

// clients gives a bounded number of clients a label of their own: every pinned
// one, and the busiest of the others. Looking up one that has a label is a
// pointer load and a map access.
type clients struct {
	max   int
	other *client
	// table is replaced, never changed. It holds other under "other" (where
	// a client of that name is counted too) and under the empty name.
	table  atomic.Pointer[map[string]*client]
	sketch atomic.Pointer[sketch] // of those without a label

	mu      sync.Mutex // held while the table is replaced
	rotated time.Time
}

func newClients(most int) *clients {
	c := &clients{max: most, other: &client{label: Other}}
	c.table.Store(&map[string]*client{Other: c.other, "": c.other})
	c.sketch.Store(newSketch(most))
	return c
}

// of returns what counts for the client of that ID.
func (c *clients) of(id string) *client {
	table := *c.table.Load()
	if found, ok := table[id]; ok {
		found.hits.Add(1)
		return found
	}
	if labelled(table) < c.max {
		return c.adopt(id)
	}
	c.sketch.Load().add(id)
	return c.other
}

// labelled is how many clients the table gives a label of their own.
func labelled(table map[string]*client) int { return len(table) - 2 }

// adopt gives the client a label if there is still room.
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
	id = strings.Clone(id) // or the label keeps a request's memory alive
	table[id] = &client{label: id}
	return table[id]
}

// pin gives each of these clients a label and releases all others to the
// competition. Clients that no longer fit lose theirs, the least busy first;
// pinned ones always fit, even if they are more than max.
func (c *clients) pin(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := maps.Clone(*c.table.Load())
	for _, held := range next {
		held.pinned = false
	}
	for _, id := range ids {
		held, ok := next[id]
		if !ok {
			held = add(next, id)
		}
		held.pinned = held != c.other
	}
	rivals := c.rivals(next)
	for labelled(next) > c.max && len(rivals) > 0 {
		delete(next, rivals[0].label)
		rivals = rivals[1:]
	}
	c.table.Store(&next)
}

// rivals returns the clients that hold a label by being busy only, the least
// busy since the last rotation first.
func (c *clients) rivals(table map[string]*client) []*client {
	var held []*client
	for _, holder := range table {
		if holder != c.other && !holder.pinned {
			held = append(held, holder)
		}
	}
	slices.SortFunc(held, func(a, b *client) int {
		return cmp.Or(cmp.Compare(a.recentHits(), b.recentHits()), cmp.Compare(b.label, a.label))
	})
	return held
}

// recentHits is how busy the client was since the last rotation.
func (c *client) recentHits() uint64 { return c.hits.Load() - c.seenHits }

// rotate passes labels on from quiet clients to busier ones, once in
// rotateEvery. A challenger must be twice as busy as whom it replaces, and at
// most a tenth of the labels change hands at once: every change makes new
// series in Prometheus, and a label that flutters draws no line.
func (c *clients) rotate(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.rotated) < rotateEvery {
		return
	}
	c.rotated = now
	votes := c.sketch.Swap(newSketch(c.max)).winners()
	next := maps.Clone(*c.table.Load())
	c.deal(next, votes)
	for _, held := range next {
		held.seenHits = held.hits.Load()
	}
	c.table.Store(&next)
}

// deal gives free labels, and those of quiet clients, to the challengers.
func (c *clients) deal(table map[string]*client, votes map[string]uint64) {
	challengers := slices.SortedFunc(maps.Keys(votes), func(a, b string) int {
		return cmp.Or(cmp.Compare(votes[b], votes[a]), cmp.Compare(a, b))
	})
	rivals := c.rivals(table)
	rivals = rivals[:min(len(rivals), max(1, c.max/10))]
	for _, challenger := range challengers {
		switch {
		case table[challenger] != nil: // it was given a label meanwhile
		case labelled(table) < c.max:
			add(table, challenger)
		case len(rivals) > 0 && votes[challenger] > 2*rivals[0].recentHits():
			delete(table, rivals[0].label)
			rivals = rivals[1:]
			add(table, challenger)
		default:
			return
		}
	}
}

// all returns every client with a label of its own, and other at the end.
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
