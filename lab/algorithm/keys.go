package algorithm

import (
	"hash/maphash"
	"strings"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// keys numbers the keys whose requests still matter, and counts all that there were. So the memory is that of the keys
// of a time, but for a hash of each.
type keys struct {
	idle    int64 // milliseconds after which nothing of a key matters
	numbers map[ratelimit.Key]int
	last    []int64 // time of the last request, by number
	free    []int   // numbers
	first   Key     // keeps its number: its values over time are wanted
	seen    map[uint64]struct{}
	most    int // at once

	left int   // requests until the next sweep
	next int64 // not before is it
}

// minSweep is after how many requests at least what is old is looked for.
const minSweep = 1 << 10

var seed = maphash.MakeSeed()

// newKeys returns keys of algorithms of that limit. After the last request of a key its burst is filled up again, or
// its queue served, and then what was served last leaves the window.
func newKeys(l Limit) keys {
	window := l.Window.Milliseconds()
	return keys{
		idle: window + ceil(l.burst()*window, l.Requests), numbers: map[ratelimit.Key]int{}, seen: map[uint64]struct{}{},
	}
}

// of returns the key of a request at a time.
func (ks *keys) of(r *traffic.Request, ms int64) Key {
	ks.sweep(ms)
	k := Key{Key: ratelimit.Key{ClientID: r.Client, Username: r.User}}
	k.hash = maphash.Comparable(seed, k.Key)
	n, known := ks.numbers[k.Key]
	if !known {
		k.ClientID, k.Username = strings.Clone(k.ClientID), strings.Clone(k.Username) // not the whole line
		n = ks.number()
		ks.numbers[k.Key] = n
		ks.seen[k.hash] = struct{}{}
		ks.most = max(ks.most, len(ks.numbers))
	}
	k.Number = n
	ks.last[n] = ms
	if n == 0 {
		ks.first = k
	}
	return k
}

// number returns a number that no key has.
func (ks *keys) number() (n int) {
	if last := len(ks.free) - 1; last >= 0 {
		n, ks.free = ks.free[last], ks.free[:last]
		return n
	}
	ks.last = append(ks.last, 0)
	return len(ks.last) - 1
}

// sweep takes the numbers of the keys that are idle: not often, and only after as many requests as the last sweep has left
// keys.
func (ks *keys) sweep(ms int64) {
	if ks.left--; ks.left >= 0 || ms < ks.next {
		return
	}
	for k, n := range ks.numbers {
		if n > 0 && ms-ks.last[n] > ks.idle {
			delete(ks.numbers, k)
			ks.free = append(ks.free, n)
		}
	}
	ks.left, ks.next = max(len(ks.numbers), minSweep), ms+ks.idle/2
}
