package gateway

import (
	"net/netip"
	"sync"
	"time"

	"oauth-server/internal/limiter"
)

// The maximum number of concurrent requests of a client from one source address, if their secret
// has not got a token yet. They slow down guessing by someone who knows only the client's name.
// They take nothing from other requests, see [limiter.Credentials].
const (
	mostPerSource = 256
	mostPerSite   = 10 * mostPerSource // of an IPv6 /48, which a single customer can have
	mostDoubted   = 2                  // after doubtedAfter possible guesses in a row
)

const (
	// doubtedAfter is the number of possible guesses in a row, of a client from one source, that
	// lowers the maximum.
	doubtedAfter = 5
	// doubtedFor is how long guesses are remembered after the last one.
	doubtedFor = 10 * time.Minute
	// maxDoubted bounds the memory for guesses, to 36 MB with the longest names.
	maxDoubted = 100_000
)

// underWay counts the requests in progress, and bounds those without a proven secret by client and
// source.
type underWay struct {
	mu      sync.Mutex
	all     int
	count   map[origin]int
	failing map[origin]failing
}

// origin is a client, and the source or site of its requests.
type origin struct{ client, source string }

// place is the entry of one request in underWay.
type place struct {
	origin
	site  string // of IPv6 addresses
	taken bool
	free  bool // has a proven secret, so it is not bounded and not a guess
}

// failing counts the possible guesses of a client from one source.
type failing struct {
	inRow int
	until time.Time
}

func newUnderWay() *underWay {
	return &underWay{count: map[origin]int{}, failing: map[origin]failing{}}
}

// take counts a request, unless there are too many. If the place is taken, the caller calls
// release. Requests that a browser sends for pages of other sites are counted separately, so they
// do not restrict an app at the same address.
func (u *underWay) take(now time.Time, client string, remote netip.Addr, page, free bool) place {
	p := place{origin: origin{client, limiter.SourceOf(remote)}, site: limiter.SiteOf(remote), free: free, taken: true}
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

// len returns the number of requests in progress.
func (u *underWay) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}

// proven resets the guesses of a client from a source after it got a token. It is called before the
// answer is written, so the client's next requests are not restricted.
func (u *underWay) proven(p *place) {
	if p.free {
		return // others may guess from the same address
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.failing, p.origin)
}

// release ends a request, and counts it if it may be a guess.
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
		for k := range u.failing { // evict any entry
			delete(u.failing, k)
			break
		}
	}
	if now.After(f.until) {
		f.inRow = 0
	}
	u.failing[p.origin] = failing{f.inRow + 1, now.Add(doubtedFor)}
}
