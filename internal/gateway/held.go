package gateway

import (
	"net/netip"
	"sync"
	"time"

	"oauth-server/internal/network"
)

// How many requests may be under way at the upstream at once, so that a stranger who names a client holds little of its
// quota: of a client from one source address that has got no token for it lately, from one that has, and of a client in
// all.
const (
	heldByStranger = 2
	heldPerSource  = 256
	heldPerClient  = 4096
)

const (
	// provenFor is how long a source is known after it has got a token.
	provenFor = time.Hour
	// maxProven bounds the memory for known sources, to some 20 MB.
	maxProven = 100_000
)

// held counts requests that are under way, by client, and by client and source.
type held struct {
	mu     sync.Mutex
	count  map[holder]int
	proven map[holder]time.Time // until when a source is known
}

type holder struct{ client, source string }

func newHeld() *held { return &held{count: map[holder]int{}, proven: map[holder]time.Time{}} }

// take counts a request, and reports false if there are too many. Every request that is counted needs a release.
func (h *held) take(now time.Time, client string, remote netip.Addr) (from holder, ok bool) {
	from = holder{client, network.Source(remote)}
	h.mu.Lock()
	defer h.mu.Unlock()
	most := heldByStranger
	if now.Before(h.proven[from]) {
		most = heldPerSource
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

// release ends a request. proven says that it has got a token.
func (h *held) release(now time.Time, from holder, proven bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range []holder{from, {client: from.client}} {
		if h.count[k]--; h.count[k] == 0 {
			delete(h.count, k)
		}
	}
	if !proven {
		return
	}
	if _, known := h.proven[from]; !known && len(h.proven) >= maxProven {
		for k := range h.proven { // any one
			delete(h.proven, k)
			break
		}
	}
	h.proven[from] = now.Add(provenFor)
}
