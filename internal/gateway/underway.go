package gateway

import (
	"net/netip"
	"sync"
	"time"

	"oauth-server/internal/network"
)

// How many requests may be under way at the upstream at once, so that a stranger who names a client holds little of its
// quota: of a client from one source address, after so many of them in a row got no token, and of a client in all.
const (
	mostPerSource = 256
	mostDoubted   = 2
	mostPerClient = 4096
)

const (
	// doubtedAfter is how many requests of a client from one source may fail in a row.
	doubtedAfter = 5
	// doubtedFor is how long after the last one they are remembered.
	doubtedFor = 10 * time.Minute
	// maxDoubted bounds the memory for them, to 36 MB with the longest names.
	maxDoubted = 100_000
)

// underWay counts requests that are under way, by client, and by client and source.
type underWay struct {
	mu      sync.Mutex
	count   map[origin]int
	failing map[origin]failing
}

// origin is a client, and where its requests come from; an empty source is of all sources.
type origin struct{ client, source string }

// failing is what is remembered of a client from one source that got no token.
type failing struct {
	inRow int
	until time.Time
}

func newUnderWay() *underWay {
	return &underWay{count: map[origin]int{}, failing: map[origin]failing{}}
}

// take counts a request, and reports false if there are too many. Every request that is counted needs a release.
func (u *underWay) take(now time.Time, client string, remote netip.Addr) (from origin, ok bool) {
	from = origin{client, network.Source(remote)}
	u.mu.Lock()
	defer u.mu.Unlock()
	most := mostPerSource
	if f := u.failing[from]; f.inRow >= doubtedAfter && now.Before(f.until) {
		most = mostDoubted
	}
	if u.count[from] >= most || u.count[origin{client: client}] >= mostPerClient {
		return from, false
	}
	u.count[from]++
	u.count[origin{client: client}]++
	return from, true
}

// len is how many requests are under way.
func (u *underWay) len() (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for k, c := range u.count {
		if k.source == "" {
			n += c
		}
	}
	return n
}

// proven is called when a client from a source has got a token, before it has the answer: its next requests are not doubted.
func (u *underWay) proven(from origin) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.failing, from)
}

// release ends a request. Those in a row that are doubtful are remembered.
func (u *underWay) release(now time.Time, from origin, doubtful bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, k := range []origin{from, {client: from.client}} {
		if u.count[k]--; u.count[k] == 0 {
			delete(u.count, k)
		}
	}
	if !doubtful {
		return
	}
	f, known := u.failing[from]
	if !known && len(u.failing) >= maxDoubted {
		for k := range u.failing { // any one
			delete(u.failing, k)
			break
		}
	}
	if now.After(f.until) {
		f.inRow = 0
	}
	u.failing[from] = failing{f.inRow + 1, now.Add(doubtedFor)}
}
