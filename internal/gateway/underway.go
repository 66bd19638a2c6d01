package gateway

import (
	"net/netip"
	"sync"
	"time"

	"oauth-server/internal/network"
)

// How many requests of a client from one source address may be under way at the upstream at once, if their secret has got no
// token yet: so a stranger who names a client guesses slowly. They take nothing from others, see [judgement.Credentials].
const (
	mostPerSource = 256
	mostPerSite   = 10 * mostPerSource // of an IPv6 /48, which one customer can have alone
	mostDoubted   = 2                  // after so many of them in a row that may have been guesses
)

const (
	// doubtedAfter is how many requests of a client from one source may be guesses, in a row.
	doubtedAfter = 5
	// doubtedFor is how long after the last one they are remembered.
	doubtedFor = 10 * time.Minute
	// maxDoubted bounds the memory for them, to 36 MB with the longest names.
	maxDoubted = 100_000
)

// underWay counts requests that are under way, and those of them that are bounded by client and source.
type underWay struct {
	mu      sync.Mutex
	all     int
	count   map[origin]int
	failing map[origin]failing
}

// origin is a client, and the source or the site that its requests come from.
type origin struct{ client, source string }

// place is that of a request among those under way.
type place struct {
	origin
	site  string // of IPv6 addresses
	taken bool
	free  bool // of a proven secret: it is not bounded, and no guess
}

// failing is what is remembered of a client from one source that guessed.
type failing struct {
	inRow int
	until time.Time
}

func newUnderWay() *underWay {
	return &underWay{count: map[origin]int{}, failing: map[origin]failing{}}
}

// take counts a request, unless there are too many. A place that is taken needs a release. What pages of other sites have a
// browser send is counted apart: an app at the same address is not doubted for it.
func (u *underWay) take(now time.Time, client string, remote netip.Addr, page, free bool) place {
	p := place{origin: origin{client, network.Source(remote)}, site: network.Site(remote), free: free, taken: true}
	if page {
		p.source += " pages"
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !free {
		most := mostPerSource
		if f := u.failing[p.origin]; f.inRow >= doubtedAfter && now.Before(f.until) {
			most = mostDoubted
		}
		if u.count[p.origin] >= most || p.site != "" && u.count[origin{client, p.site}] >= mostPerSite {
			p.taken = false
			return p
		}
		u.add(&p, 1)
	}
	u.all++
	return p
}

func (u *underWay) add(p *place, n int) {
	for _, source := range []string{p.source, p.site} {
		if source == "" {
			continue
		}
		k := origin{p.client, source}
		if u.count[k] += n; u.count[k] == 0 {
			delete(u.count, k)
		}
	}
}

// len is how many requests are under way.
func (u *underWay) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}

// proven is called when a client from a source has got a token, before it has the answer: its next requests are not doubted.
func (u *underWay) proven(p *place) {
	if p.free {
		return // others may guess at the same address
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.failing, p.origin)
}

// release ends a request. Those in a row that may have been guesses are remembered.
func (u *underWay) release(now time.Time, p *place, guess bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.taken = false
	u.all--
	if p.free {
		return
	}
	u.add(p, -1)
	if !guess {
		return
	}
	f, known := u.failing[p.origin]
	if !known && len(u.failing) >= maxDoubted {
		for k := range u.failing { // any one
			delete(u.failing, k)
			break
		}
	}
	if now.After(f.until) {
		f.inRow = 0
	}
	u.failing[p.origin] = failing{f.inRow + 1, now.Add(doubtedFor)}
}
