package ratelimit

import (
	"maps"
	"slices"
)

// Copy returns the state that a copy of this process would have: all counters as they are. A
// running exchange has no outcome in the copy; its counter continues as after an unknown outcome.
// The counters must not be used during the call.
func (c *Counters) Copy(o SyncOptions) (*Counters, *Sync) {
	n := NewCounters(int(c.all.maxKeys))
	y := n.Sync(o)
	n.all.hashKey, n.shift, n.shards = c.all.hashKey, c.shift, make([]shard, len(c.shards))
	n.all.keys.Store(c.all.keys.Load())
	n.all.sources.Store(c.all.sources.Load())
	for i := range c.shards {
		from, to := &c.shards[i], &n.shards[i]
		to.index, to.hot, to.cold = slices.Clone(from.index), copied(from.hot), copied(from.cold)
		to.names, to.extras, to.inbox = slices.Clone(from.names), slices.Clone(from.extras), slices.Clone(from.inbox)
		to.all, to.number, to.numbers = &n.all, from.number, from.numbers
		to.keys, to.freeNumber, to.freeCount = from.keys, from.freeNumber, from.freeCount
		to.garbage, to.freeExtras, to.repairs = from.garbage, from.freeExtras, maps.Clone(from.repairs)
		for _, word := range to.index {
			if word != 0 {
				limitsOf(to.hotOf(word & maxNumber).limits).chains.Add(1)
			}
		}
		for num := range to.numbers {
			if to.hotOf(num).state == busy {
				to.hotOf(num).state = urgent
				if to.pendingSeq(num) != 0 {
					e := to.extrasOf(num)
					e.uncertain, e.fails = true, 1
				}
			}
		}
	}
	return n, y
}

// copied returns new records with the same values.
func copied[T any](chunks []*[chunk]T) (own []*[chunk]T) {
	for _, c := range chunks {
		own = append(own, new(*c))
	}
	return own
}
