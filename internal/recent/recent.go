// Package recent remembers when things were done last, such as the issue of a token, in memory of a fixed size.
//
//	t := recent.New(time.Now(), recent.DefaultSlots)
//	again := t.Renew(time.Now(), hash, time.Hour) // whether it was done less than an hour ago
package recent

import (
	"sync/atomic"
	"time"
)

// DefaultSlots takes 1 MB.
const DefaultSlots = 1 << 17

// Table is a table of when things were done, of a fixed size: a hash of what they have in common, and a time. A new one
// takes the place of the oldest of a few, so that under too many different ones some are forgotten early. It is safe
// for concurrent use, without a lock: of two that are done at once, one may be forgotten.
type Table struct {
	began time.Time
	// slots have the hash in their upper half, and in the lower the time since began in tenths of a second,
	// plus 1; 0: empty.
	slots []atomic.Uint64
}

// Slots are of 8 bytes. Those for a hash are one cache line.
const (
	ways = 8
	tick = 100 * time.Millisecond
)

// New returns an empty table of that many slots, a multiple of 8, for times from now on.
func New(now time.Time, slots int) *Table {
	return &Table{began: now, slots: make([]atomic.Uint64, slots)}
}

// Mix combines two hashes so that their order matters.
func Mix(h, next uint64) uint64 {
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>29 ^ next
}

// Renew notes that what has the hash is done now, and reports whether it was less than that long ago.
func (t *Table) Renew(now time.Time, hash uint64, ago time.Duration) bool {
	set, entry := t.find(now, hash)
	oldest, least := 0, uint64(times)
	for i := range set {
		old := set[i].Load()
		if same(old, entry) {
			set[i].Store(entry)
			return between(old, entry) < ago
		}
		if old&times < least {
			oldest, least = i, old&times
		}
	}
	set[oldest].Store(entry)
	return false
}

// Done reports whether what has the hash was done less than that long ago. It notes nothing.
func (t *Table) Done(now time.Time, hash uint64, ago time.Duration) bool {
	set, entry := t.find(now, hash)
	for i := range set {
		if old := set[i].Load(); same(old, entry) {
			return between(old, entry) < ago
		}
	}
	return false
}

const times = 1<<32 - 1 // the lower half of a slot

// find returns the slots for a hash, and its entry at now.
func (t *Table) find(now time.Time, hash uint64) (set []atomic.Uint64, entry uint64) {
	hash = Mix(hash, 0)
	first := hash % (uint64(len(t.slots)) / ways) * ways
	return t.slots[first : first+ways], hash&^times | (uint64(max(now.Sub(t.began)/tick, 0))+1)&times
}

// same reports whether two slots are of the same hash.
func same(old, entry uint64) bool { return old != 0 && old&^times == entry&^times }

// between is the time from one slot to another.
func between(old, entry uint64) time.Duration {
	return time.Duration(max(entry&times, old&times)-old&times) * tick
}
