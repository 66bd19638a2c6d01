package algorithm

import (
	"hash/maphash"
	"strings"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate/traffic"
)

// keys numbers the keys with requests that still matter, and counts all keys it has ever seen. It
// needs memory only for the keys that are active at once, plus one hash for every key seen.
type keys struct {
	idle    int64 // milliseconds without a request after which a key no longer matters
	numbers map[ratelimit.Key]int
	last    []int64 // time of the last request, by number
	free    []int   // numbers to reuse
	first   Key     // keeps its number, because [Series] reports its values over time
	seen    map[uint64]struct{}
	most    int // at once

	left int   // requests until the next sweep
	next int64 // earliest time of the next sweep
}

// minSweep is the minimum number of requests between two sweeps.
const minSweep = 1 << 10

var seed = maphash.MakeSeed()

// newKeys returns keys for algorithms with limit l. A key is idle once its burst has filled up again or
// its queue has been served, and its last served request has then left the window.
func newKeys(l Limit) keys {
	window := l.Window.Milliseconds()
	return keys{
		idle: window + ceil(l.burst()*window, l.Requests), numbers: map[ratelimit.Key]int{}, seen: map[uint64]struct{}{},
	}
}

// of returns the key of a request at time ms.
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

// number returns an unused number.
func (ks *keys) number() (n int) {
	if last := len(ks.free) - 1; last >= 0 {
		n, ks.free = ks.free[last], ks.free[:last]
		return n
	}
	ks.last = append(ks.last, 0)
	return len(ks.last) - 1
}

// sweep frees the numbers of idle keys. To keep the cost per request low, it runs at most every half
// idle time, and only after as many requests as the last sweep left keys.
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
