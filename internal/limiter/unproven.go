package limiter

import (
	"context"
	"math"
	"net/netip"
	"sync"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

const (
	// maxLately bounds the memory for credentials that got a token, to about 8 MB.
	maxLately = 100_000
	// unprovenAfter is the number of successive responses without a token after which credentials
	// are no longer proven.
	unprovenAfter = 5
)

// ID identifies a secret that a request must know to get a token. It must come from a hash that
// others cannot compute.
type ID [16]byte

// Credentials are the credentials of a request to [Limiter.Reserve], before another server has
// verified them.
//
// Anyone can name a client. So a request with credentials that have not got a token yet must not
// take room from requests with proven credentials. It is held outside the counts until it is
// settled.
//
// It is decided together with other requests held for the client. All held requests of its own
// network count, and of each other network at most one more than of its own. So a few networks
// cannot keep out all others. Requests held for n networks get at most 1 + 1/2 + … + 1/n times the
// available room. While they are held, as many requests as that room may pass with proven
// credentials.
//
// A secret that the other server checks is better evidence than an address. Once the server has
// refused a secret of the client, requests with a secret are decided only together with requests
// with the same secret. In the same way, password grants are decided with password grants with the
// same password, as far as they count for the user. So many concurrent requests get no more tokens
// than successive ones, and a wrong secret blocks only itself.
//
// Credentials that got a token are proven, until [unprovenAfter] successive responses had no token.
// Requests with proven credentials reserve in the counts.
type Credentials struct {
	Client  ID     // of the client's secret; without one, of the client and its source address
	Secret  bool   // Client identifies a secret
	User    ID     // of the user's password; zero: none, or not needed
	Network string // network of the sender, see [NetworkOf]
}

// NetworkOf returns the largest network that one customer usually has: an IPv4 address or an IPv6
// /48.
func NetworkOf(addr netip.Addr) string {
	if site := SiteOf(addr); site != "" {
		return site
	}
	return SourceOf(addr)
}

// unproven has the held requests and the proven credentials.
type unproven struct {
	mu   sync.Mutex
	held map[ratelimit.Key]*held
	// waiting counts the requests that wait to be held, by key; wait counts all of them.
	waiting map[ratelimit.Key]int
	wait    int
	closed  chan struct{}  // closed when requests must not wait
	proven  lately[ID]     // with the number of successive responses without a token; only a token adds an entry
	checked lately[string] // clients with secrets that the other server checks
}

// lately has the most recently used entries, about 100,000 at most.
type lately[K comparable] struct {
	// young is full at maxLately/2. It then becomes old, and the previous old entries, which were
	// not used since, are dropped.
	young, old map[K]int
}

// held counts the requests that are held for one key.
type held struct {
	by       map[ID]int     // by credentials
	networks map[string]int // by network of their credentials, if it has one
}

// level is one of the keys that count a request, with the credentials for it.
type level struct {
	key     ratelimit.Key
	id      ID
	network string // empty: requests with other credentials do not matter
}

// levels returns the keys of a request: its own, its source and the total.
func (u *unproven) levels(r *Request, e *ratelimit.Effective) (all [3]level) {
	by, from := r.By, r.By.Network
	if by.Secret && u.checked.known(r.Key.ClientID) {
		from = ""
	}
	all[0] = level{r.Key, by.Client, from}
	if by.User != (ID{}) {
		all[0] = level{key: r.Key, id: by.User}
	}
	if e.Source != nil {
		all[1] = level{r.Key.Source(SourceOf(r.Remote)), by.Client, from}
	}
	all[2] = level{r.Key.Total(), by.Client, from}
	return all
}

// hold decides on a request before it is counted. It returns true if that is final for now: the
// request is held, crowded, early, or denied by the counts alone. Otherwise the caller must reserve
// it in the counts. read is set if the request has waited for the first read of its keys.
func (l *Limiter) hold(now time.Time, v *Reservation, e *ratelimit.Effective, read bool) bool {
	r, u := &v.request, &l.unproven
	if r.By == nil || e.Mode == ratelimit.Off || e.Trusted {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	v.Decision, v.crowded, v.early = ratelimit.Decision{}, false, false
	all, proven := u.levels(r, e), u.proves(r.By)
	if proven && !u.holds(&all) { // nearly always
		return false
	}
	var room [3]int64
	room[0], room[1], room[2] = l.Counters.Room(now, r.Key, e)
	if e.Mode == ratelimit.Enforce {
		if d, denied := l.Counters.Denies(now, r.Key, e); denied && !proven {
			v.Decision = d
			return true
		}
		for i := range all {
			n := u.before(&all[i], proven, room[i])
			v.ahead[i] = n
			v.early = v.early || n >= counting.Unread && !proven && !read
			if n > 0 && room[i] > 0 && room[i] <= n {
				v.crowded = true
				return true
			}
		}
	}
	if proven || v.early {
		return v.early
	}
	for i := range all {
		if room[i] < math.MaxInt64 {
			u.add(&all[i], 1)
			v.held = append(v.held, all[i])
		}
	}
	v.unproven, v.Outcome = true, ratelimit.Allowed
	return true
}

// pauseFor is how long a request that cannot be held yet pauses before it tries again.
const pauseFor = 50 * time.Millisecond

// pause makes a request that cannot be held yet wait for a while, if its policy allows waiting. It
// reports whether to try again. The request is in no queue, because queues are for proven clients.
func (u *unproven) pause(ctx context.Context, v *Reservation, e *ratelimit.Effective) bool {
	k := v.request.Key
	u.mu.Lock()
	if !e.Waits(k) || v.OverShared() || v.Waited+max(v.RetryAfter, time.Millisecond) > e.Wait.Longest ||
		u.waiting[k] >= e.Wait.AtOnce || u.wait >= ratelimit.MaxWaiting {
		u.mu.Unlock()
		return false
	}
	if u.waiting == nil {
		u.waiting = map[ratelimit.Key]int{}
	}
	count(u.waiting, k, 1)
	u.wait++
	u.mu.Unlock()
	again := time.NewTimer(pauseFor)
	defer again.Stop()
	looks := false
	select {
	case <-again.C:
		looks = true
	case <-ctx.Done():
	case <-u.closed:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	count(u.waiting, k, -1)
	u.wait--
	return looks
}

func (u *unproven) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.closed:
	default:
		close(u.closed)
	}
}

// holds reports whether any request with the same credentials is held.
func (u *unproven) holds(all *[3]level) bool {
	for i := range all {
		if h := u.held[all[i].key]; h != nil && h.by[all[i].id] > 0 {
			return true
		}
	}
	return false
}

// before returns how many held requests come before another one. It may stop counting at room.
func (u *unproven) before(l *level, proven bool, room int64) int64 {
	h := u.held[l.key]
	switch {
	case h == nil:
		return 0
	case proven || l.network == "":
		return int64(h.by[l.id])
	}
	own := h.networks[l.network]
	n := int64(own)
	for other, its := range h.networks {
		if n >= room {
			break
		}
		if other != l.network {
			n += int64(min(its, own+1))
		}
	}
	return n
}

// add counts n held requests; n may be negative.
func (u *unproven) add(l *level, n int) {
	h := u.held[l.key]
	if h == nil {
		h = &held{map[ID]int{}, map[string]int{}}
		if u.held == nil {
			u.held = map[ratelimit.Key]*held{}
		}
		u.held[l.key] = h
	}
	count(h.by, l.id, n)
	if l.network != "" {
		count(h.networks, l.network, n)
	}
	if len(h.by) == 0 {
		delete(u.held, l.key)
	}
}

func count[K comparable](all map[K]int, k K, n int) {
	if all[k] += n; all[k] == 0 {
		delete(all, k)
	}
}

// release ends the hold of a reservation.
func (u *unproven) release(v *Reservation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range v.held {
		u.add(&v.held[i], -1)
	}
	v.held, v.unproven = nil, false
}

// proves reports whether all of the credentials are proven.
func (u *unproven) proves(by *Credentials) bool {
	return u.proven.known(by.Client) && (by.User == ID{} || u.proven.known(by.User))
}

// known reports whether an entry exists, and marks it as used.
func (l *lately[K]) known(k K) bool {
	if _, known := l.young[k]; known {
		return true
	}
	n, known := l.old[k]
	if known {
		l.set(k, n)
	}
	return known
}

func (l *lately[K]) set(k K, n int) {
	if _, known := l.young[k]; !known && len(l.young) >= maxLately/2 || l.young == nil {
		l.old, l.young = l.young, map[K]int{}
	}
	l.young[k] = n
}

// Proven reports whether the secret of a client has got a token. An address proves nothing here,
// because it may be shared.
func (l *Limiter) Proven(by *Credentials) bool {
	u := &l.unproven
	u.mu.Lock()
	defer u.mu.Unlock()
	return by.Secret && u.proven.known(by.Client)
}

// Prove records that a request is getting a token, so its credentials are proven. If the request
// was held, Prove counts it. If others have taken the room in between, Settle reports the request
// as late. Settle calls Prove too.
func (l *Limiter) Prove(ctx context.Context, v *Reservation) {
	r, u := &v.request, &l.unproven
	if r.By == nil {
		return
	}
	if v.unproven {
		waited, leased := v.Waited, v.Leased
		v.Admission = l.queues.Decide(context.WithoutCancel(ctx), r.Key, r.under(l.Policies()))
		if v.late = v.Rejected(); v.late {
			v.Outcome, v.RetryAfter = ratelimit.Allowed, 0 // it has passed
		}
		v.Leased += leased
		if v.Waited = waited; waited > 0 && v.Outcome == ratelimit.Allowed {
			v.Outcome = ratelimit.Delayed
		}
		u.release(v) // only once it is counted
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.proven.set(r.By.Client, 0)
	if r.By.User != (ID{}) {
		u.proven.set(r.By.User, 0)
	}
}

// Refuse is [Limiter.Cancel] for a request that was answered without a token. wrongSecret is set if
// the response says that the secret of the client is wrong.
func (l *Limiter) Refuse(v *Reservation, wrongSecret bool) {
	if v.request.By != nil {
		l.unproven.refuse(&v.request, wrongSecret)
	}
	l.Cancel(v)
}

func (u *unproven) refuse(r *Request, wrongSecret bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if wrongSecret && r.By.Secret {
		u.checked.set(r.Key.ClientID, 0)
	}
	p := &u.proven
	for _, id := range []ID{r.By.Client, r.By.User} {
		if !p.known(id) {
			continue
		}
		if failed := p.young[id] + 1; failed < unprovenAfter {
			p.young[id] = failed
		} else {
			delete(p.young, id)
			delete(p.old, id)
		}
	}
}
