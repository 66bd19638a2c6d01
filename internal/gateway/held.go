package gateway

import (
	"net/netip"
	"sync"

	"oauth-server/internal/network"
)

// How many requests may be under way at the upstream at once, so that a stranger who names a client holds no more of
// its quota: of a client from one source address, and of a client in all.
const (
	heldPerSource = 32
	heldPerClient = 1024
)

// held counts requests that are under way, by client, and by client and source.
type held struct {
	mu    sync.Mutex
	count map[holder]int
}

type holder struct{ client, source string }

func newHeld() *held { return &held{count: map[holder]int{}} }

// take counts a request, and reports false if there are too many. Every request that is counted needs a release.
func (h *held) take(client string, remote netip.Addr) (release func(), ok bool) {
	all, from := holder{client: client}, holder{client, network.Source(remote)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count[from] >= heldPerSource || h.count[all] >= heldPerClient {
		return nil, false
	}
	h.count[from]++
	h.count[all]++
	return func() { h.release(all, from) }, true
}

func (h *held) release(holders ...holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range holders {
		if h.count[k]--; h.count[k] == 0 {
			delete(h.count, k)
		}
	}
}
