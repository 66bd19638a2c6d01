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
	heldPerSource = 256
	heldDoubted   = 2
	heldPerClient = 4096
)

const (
	// doubtedAfter is how many requests of a client from one source may fail in a row.
	doubtedAfter = 5
	// doubtedFor is how long after the last one they are remembered.
	doubtedFor = 10 * time.Minute
	// maxDoubted bounds the memory for them, to 36 MB with the longest names.
	maxDoubted = 100_000
)

// held counts requests that are under way, by client, and by client and source.
type held struct {
	mu      sync.Mutex
	count   map[holder]int
	failing map[holder]failing
}

type holder struct{ client, source string }

// failing is what is remembered of a client from one source that got no token.
type failing struct {
	inRow int
	until time.Time
}

func newHeld() *held { return &held{count: map[holder]int{}, failing: map[holder]failing{}} }

// take counts a request, and reports false if there are too many. Every request that is counted needs a release.
func (h *held) take(now time.Time, client string, remote netip.Addr) (from holder, ok bool) {
	from = holder{client, network.Source(remote)}
	h.mu.Lock()
	defer h.mu.Unlock()
	most := heldPerSource
	if f := h.failing[from]; f.inRow >= doubtedAfter && now.Before(f.until) {
		most = heldDoubted
	}
	if h.count[from] >= most || h.count[holder{client: client}] >= heldPerClient {
		return from, false
	}
	h.count[from]++
	h.count[holder{client: client}]++
	return from, true
}

// len is how many requests are under way.
func (h *held) len() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, c := range h.count {
		if k.source == "" {
			n += c
		}
	}
	return n
}

// proven is called when a client from a source has got a token, before it has the answer: its next requests are not doubted.
func (h *held) proven(from holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.failing, from)
}

// release ends a request. Those in a row that the upstream refused are remembered.
func (h *held) release(now time.Time, from holder, refused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range []holder{from, {client: from.client}} {
		if h.count[k]--; h.count[k] == 0 {
			delete(h.count, k)
		}
	}
	if !refused {
		return
	}
	f, known := h.failing[from]
	if !known && len(h.failing) >= maxDoubted {
		for k := range h.failing { // any one
			delete(h.failing, k)
			break
		}
	}
	if now.After(f.until) {
		f.inRow = 0
	}
	h.failing[from] = failing{f.inRow + 1, now.Add(doubtedFor)}
}
