// Package recent records when events last happened, such as issuing a token, in a fixed amount of
// memory.
//
//	t := recent.New(time.Now(), recent.DefaultSlots)
//	again := t.Renew(time.Now(), hash, time.Hour) // whether it happened less than an hour ago
package recent

import (
	"sync/atomic"
	"time"
)

// DefaultSlots uses 1 MB.
const DefaultSlots = 1 << 17

// Table records when events last happened, in a fixed size: the event's hash and its time. A new
// entry replaces the oldest in a small set of slots, so with too many different events some are
// forgotten early. It is safe for concurrent use, without a lock. Of two concurrent writes, one may
// be lost.
type Table struct {
	began time.Time
	// slots have the hash in the upper half and the time in the lower half, in tenths of a second
	// since began, plus 1; 0: empty.
	slots []atomic.Uint64
}

// A slot has 8 bytes. The slots for a hash are one cache line.
const (
	ways = 8
	tick = 100 * time.Millisecond
)

// New returns an empty table with that many slots, a multiple of 8, for times from now on.
func New(now time.Time, slots int) *Table {
	return &Table{began: now, slots: make([]atomic.Uint64, slots)}
}

// Mix combines two hashes. Their order matters.
func Mix(h, next uint64) uint64 {
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return h ^ h>>29 ^ next
}

// Renew records that the event with this hash happens now, and reports whether it last happened
// less than ago before.
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

// Done reports whether the event with this hash happened less than ago before. It records nothing.
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

// find returns the slots for a hash, and its entry for the time now.
func (t *Table) find(now time.Time, hash uint64) (set []atomic.Uint64, entry uint64) {
	hash = Mix(hash, 0)
	first := hash % (uint64(len(t.slots)) / ways) * ways
	return t.slots[first : first+ways], hash&^times | (uint64(max(now.Sub(t.began)/tick, 0))+1)&times
}

// same reports whether two slots have the same hash.
func same(old, entry uint64) bool { return old != 0 && old&^times == entry&^times }

// between returns the time between two slots.
func between(old, entry uint64) time.Duration {
	return time.Duration(max(entry&times, old&times)-old&times) * tick
}
