package judgement

import (
	"context"
	"math"
	"net/netip"
	"sync"
	"time"

	"oauth-server/internal/network"
	"oauth-server/internal/ratelimit"
)

const (
	// maxLately bounds the memory for credentials that got a token, to some 8 MB.
	maxLately = 100_000
	// unprovenAfter is how many answers in a row without a token it takes until credentials prove nothing.
	unprovenAfter = 5
)

// ID stands for something that a request has to know to get a token. It must be of a hash that others cannot compute.
type ID [16]byte

// Credentials are what a request shows that [Judge.Reserve] decides on, before another server has verified it.
//
// Anyone can name a client. So a request with credentials that have not got a token yet takes no room from those that have: it is
// held beside the counts until it is settled.
//
// It is decided with the others that are held for the client: all of its own network, and of each other one at most one more
// than that. So few networks cannot keep out all others. Requests that are held for n networks get at most
// 1 + 1/2 + … + 1/n times the room that there was, and as many as that room may pass meanwhile with proven credentials.
//
// A secret that the other server checks tells more than an address. Once it has refused one of the client, requests with a secret
// are decided with those of the same secret alone, and so are password grants, with those of the same password, where they count
// for the user: many at once get no more tokens than one after the other, and a wrong secret keeps only itself from passing.
//
// Credentials that got a token are proven, until [unprovenAfter] answers in a row had none: they reserve in the counts.
type Credentials struct {
	Client  ID     // of the secret of the client; without one, of the client and the source of its address
	Secret  bool   // Client is of a secret
	User    ID     // of the user's password; zero: there is none, or it is not needed
	Network string // where it comes from, see [NetworkOf]
}

// NetworkOf returns the network of an address, the largest that one customer usually has: an IPv4 address or an IPv6 /48.
func NetworkOf(addr netip.Addr) string {
	if site := network.Site(addr); site != "" {
		return site
	}
	return network.Source(addr)
}

// unproven are the requests that are held, and the credentials that are proven.
type unproven struct {
	mu   sync.Mutex
	held map[ratelimit.Key]*held
	// waiting are the requests that wait to be held, by key, and in all.
	waiting map[ratelimit.Key]int
	wait    int
	closed  chan struct{}  // none waits any more
	proven  lately[ID]     // with the answers in a row without a token. Only a token adds any.
	checked lately[string] // clients whose secrets the other server checks
}

// lately has what was used last, some 100,000 at most.
type lately[K comparable] struct {
	// young is full after maxLately/2. Then old is forgotten, which is what was not used since young was empty.
	young, old map[K]int
}

// held counts the requests that are held for one key.
type held struct {
	by       map[ID]int     // credentials
	networks map[string]int // of credentials that have one
}

// level is one of the keys that a request counts against, with the credentials for it.
type level struct {
	key     ratelimit.Key
	id      ID
	network string // empty: those of other credentials do not matter
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
		all[1] = level{r.Key.Source(network.Source(r.Remote)), by.Client, from}
	}
	all[2] = level{r.Key.Total(), by.Client, from}
	return all
}

// hold decides on a request before it counts, and reports whether that is all for now: it is held, or crowded, or denied by
// the counts alone. Otherwise it is to be reserved in them.
func (j *Judge) hold(now time.Time, v *Reservation, e *ratelimit.Effective) bool {
	r, u := &v.request, &j.unproven
	if r.By == nil || e.Mode == ratelimit.Off || e.Trusted {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	v.Decision, v.crowded = ratelimit.Decision{}, false
	all, proven := u.levels(r, e), u.proves(r.By)
	if proven && !u.holds(&all) { // nearly always
		return false
	}
	var room [3]int64
	room[0], room[1], room[2] = j.Counters.Room(now, r.Key, e)
	if e.Mode == ratelimit.Enforce {
		if d, denied := j.Counters.Denies(now, r.Key, e); denied && !proven {
			v.Decision = d
			return true
		}
		for i := range all {
			if n := u.before(&all[i], proven, room[i]); n > 0 && room[i] > 0 && room[i] <= n {
				v.crowded = true
				return true
			}
		}
	}
	if proven {
		return false
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

// pauseFor is how long a request that waits to be held waits for others with its credentials.
const pauseFor = 50 * time.Millisecond

// pause has a request that cannot be held yet wait for a while, if its policy has it wait, and reports whether to look again.
// It is in no line: those are for who is proven.
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

// holds reports whether anything is held for credentials.
func (u *unproven) holds(all *[3]level) bool {
	for i := range all {
		if h := u.held[all[i].key]; h != nil && h.by[all[i].id] > 0 {
			return true
		}
	}
	return false
}

// before returns how many of the requests that are held come before another one; no more than the room matter.
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

// add counts requests that are held.
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

// release ends what a reservation holds.
func (u *unproven) release(v *Reservation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range v.held {
		u.add(&v.held[i], -1)
	}
	v.held, v.unproven = nil, false
}

// proves reports whether credentials are proven, all of them.
func (u *unproven) proves(by *Credentials) bool {
	return u.proven.known(by.Client) && (by.User == ID{} || u.proven.known(by.User))
}

// known reports whether something is there, which is then young.
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

// Proven reports whether the secret of a client has got a token. An address proves nothing here: it may be shared.
func (j *Judge) Proven(by *Credentials) bool {
	u := &j.unproven
	u.mu.Lock()
	defer u.mu.Unlock()
	return by.Secret && u.proven.known(by.Client)
}

// Prove notes that a request is getting a token, so that its credentials are proven, and counts it if it was held: others may
// have taken the room meanwhile, which Settle reports as late then. Settle calls it, too.
func (j *Judge) Prove(ctx context.Context, v *Reservation) {
	r, u := &v.request, &j.unproven
	if r.By == nil {
		return
	}
	if v.unproven {
		waited := v.Waited
		v.Turn = j.lines.Decide(context.WithoutCancel(ctx), r.Key, r.under(j.Policies()))
		if v.late = v.Rejected(); v.late {
			v.Outcome, v.RetryAfter = ratelimit.Allowed, 0 // it has passed
		}
		if v.Waited = waited; waited > 0 && v.Outcome == ratelimit.Allowed {
			v.Outcome = ratelimit.Delayed
		}
		u.release(v) // not before it counts
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.proven.set(r.By.Client, 0)
	if r.By.User != (ID{}) {
		u.proven.set(r.By.User, 0)
	}
}

// Refuse is [Judge.Cancel] for a request that was answered without a token. wrongSecret is set if that says that the secret of
// the client is wrong.
func (j *Judge) Refuse(v *Reservation, wrongSecret bool) {
	if v.request.By != nil {
		j.unproven.refuse(&v.request, wrongSecret)
	}
	j.Cancel(v)
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
