package overload

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// Request describes a request for a [Shedder].
type Request struct {
	ClientID    string // empty: unknown
	Source      string // the source, for a client that anyone can send requests as
	Class       Class
	Criticality ratelimit.Criticality // from the policy of the client, or unset
	Trusted     bool

	WouldShed bool // set by the shedder in dry-run mode: the request was admitted but would have been refused
}

// Observer is called with every request that a shedder did not simply admit. It must not block.
type Observer func(r *Request, o Outcome)

// Shedder refuses requests while work waits too long for the processor, or while too many requests are
// in progress. It is safe for concurrent use.
type Shedder struct {
	settings atomic.Pointer[Settings]
	observe  Observer
	started  time.Time // origin of times, independent of the wall clock
	demand   demand
	clients  clients

	// used by Run
	control            controller
	waits              standingWait
	began              time.Time // start of the period of clients
	overload, helpless episode
	mode               ratelimit.Mode // at the last beat
	busy               func(time.Duration) bool
	stopped            time.Duration // how long a quota stops a busy process at a time
	gone               atomic.Uint64 // callers that had hung up on arrival, since the last beat
	lost               float64       // recent rate of these per second

	refused  atomic.Uint64 // float64: share of requests
	level    atomic.Uint32 // the refused level; in dry-run mode, the level that would be refused
	elapsed  atomic.Uint64 // float64: elapsed share of the period of clients
	since    atomic.Int64  // start of the overload, by uptime; 0: none
	useless  atomic.Int64  // the same for the most critical requests
	crowded  atomic.Uint32 // highest rank + 1 without room since the last beat; 0: there was room
	upTo     atomic.Uint32 // highest criticality that is partly refused
	wait     atomic.Int64
	inFlight atomic.Int64
	results  [Classes][Outcomes]atomic.Uint64
	starved  [Classes][Outcomes]atomic.Int64 // starved requests that are still counted as admitted or would_shed
}

// New returns a Shedder. It admits everything until Run is called. observe may be nil.
func New(s Settings, observe Observer) *Shedder {
	if observe == nil {
		observe = func(*Request, Outcome) {}
	}
	now := time.Now()
	g := &Shedder{observe: observe, started: now, began: now, busy: new(processorUse).busy}
	g.settings.Store(&s)
	return g
}

// SetQuota sets how many processors a CPU quota leaves the process, or 0 without a quota. A process
// that uses half of its quota causes its own waits, however many processors there are. Call
// SetQuota before Run.
func (g *Shedder) SetQuota(processors float64) {
	use := processorUse{quota: processors}
	g.busy, g.stopped = use.busy, use.stopped(runtime.GOMAXPROCS(0), runtime.NumCPU())
}

// Set changes the settings.
func (g *Shedder) Set(s Settings) { g.settings.Store(&s) }

// Admit returns nil and the rank of the request if it is admitted. The caller then calls Leave at
// the end. Otherwise it returns a *[ShedError].
func (g *Shedder) Admit(ctx context.Context, r *Request) (Rank, error) {
	s := g.settings.Load()
	if s.Mode == ratelimit.Off {
		g.inFlight.Add(1)
		return g.rank(r), nil
	}
	rank := g.rank(r)
	g.demand.arrived[rank].Add(1)
	inFlight := g.inFlight.Add(1)
	l, enforced := level(g.level.Load()), s.Mode == ratelimit.Enforce
	late := l > 0 || time.Duration(g.wait.Load()) > g.target(s, ratelimit.Sheddable) // also if other programs use the processors
	if late && CallerGone(ctx) {
		g.gone.Add(1)
		if enforced {
			return 0, g.refuse(r, Abandoned)
		}
	}
	full := inFlight > room(s.MaxInFlight, rank)
	if full {
		g.noRoom(rank)
	}
	if dice := cast(ctx); full || l.refuses(rank, dice) {
		if enforced {
			return 0, g.refuse(r, Shed)
		}
		r.WouldShed = true
		if !g.balances(r.Class, WouldShed) {
			g.results[r.Class][WouldShed].Add(1)
		}
		g.observe(r, WouldShed)
		return rank, nil
	}
	if !g.balances(r.Class, Admitted) {
		g.results[r.Class][Admitted].Add(1)
	}
	return rank, nil
}

// RefusingTokens reports whether token requests of clients without their own criticality are
// currently refused. While only less critical requests, such as sign-ins, are refused, checking
// token requests early is useless.
func (g *Shedder) RefusingTokens() bool {
	return level(g.level.Load()) > levelOf(int(ratelimit.SheddablePlus-ratelimit.Sheddable)*perCriticality, 0) &&
		g.settings.Load().Mode == ratelimit.Enforce
}

// RefuseEarly refuses a request of a known client if Admit would refuse it. It returns nil if Admit
// must decide. On a connection without dice, see [WithConn], it refuses only what Admit would refuse
// whatever the number is.
func (g *Shedder) RefuseEarly(ctx context.Context, r *Request) *ShedError {
	l := level(g.level.Load())
	elapsed := math.Float64frombits(g.elapsed.Load())
	sender := g.clients.find(r.sender())
	rank := rankOf(r.Class.criticality(r.Criticality, r.Trusted), r.Class, g.clients.look(r, sender, elapsed))
	n := uint32(levelUnit - 1)
	if dice := diceOf(ctx); dice != nil {
		n = dice.Load() % levelUnit
	}
	if g.settings.Load().Mode != ratelimit.Enforce || !l.refuses(rank, n) {
		return nil
	}
	cast(ctx)
	g.clients.count(sender)
	g.demand.arrived[rank].Add(1)
	if CallerGone(ctx) {
		g.gone.Add(1)
		g.count(r, Abandoned)
	} else {
		g.count(r, Shed)
	}
	return g.shed()
}

// Starved counts an admitted request, which ctx carries, as refused because no processor is left to
// hash its password. It does so in every mode. It returns a *[ShedError].
func (g *Shedder) Starved(ctx context.Context) error {
	if r := Requested(ctx); r != nil {
		rank := RankFrom(ctx)
		g.noRoom(rank)
		if g.settings.Load().Mode != ratelimit.Off { // then it was counted as admitted
			counted := Admitted
			if r.WouldShed {
				counted = WouldShed
			}
			g.starved[r.Class][counted].Add(1)
		}
		g.count(r, Shed)
	}
	return g.shed()
}

// balances reports whether an outcome must not be counted, because a request of the same class was
// counted with it before and starved later. So counters never decrease, and each request has one
// outcome.
func (g *Shedder) balances(c Class, o Outcome) bool {
	starved := &g.starved[c][o]
	for n := starved.Load(); n > 0; n = starved.Load() {
		if starved.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// Leave ends an admitted request.
func (g *Shedder) Leave() { g.inFlight.Add(-1) }

// Used records the share of its limit that a client has used, from a decision of the limiter.
// Values above 1 count as 1.
func (g *Shedder) Used(clientID string, usage float64) { g.clients.used(clientID, usage) }

func (g *Shedder) rank(r *Request) Rank {
	at := unknown
	if r.ClientID != "" {
		at = g.clients.standing(r, math.Float64frombits(g.elapsed.Load()))
	}
	return rankOf(r.Class.criticality(r.Criticality, r.Trusted), r.Class, at)
}

// room returns the maximum number of requests in progress at which one of the rank is admitted. The
// last tenth of the maximum is reserved for the highest criticality, the tenth before it for that
// one and the next, and so on.
func room(most int, r Rank) int64 {
	tenths := 10 - int(ratelimit.CriticalPlus-r.Criticality())
	return int64(most * tenths / 10)
}

// noRoom records that a request of the rank found no room, or no processor.
func (g *Shedder) noRoom(r Rank) {
	for {
		before := g.crowded.Load()
		if uint32(r) < before || g.crowded.CompareAndSwap(before, uint32(r)+1) {
			return
		}
	}
}

func (g *Shedder) uptime() time.Duration { return time.Since(g.started) }

func (g *Shedder) refuse(r *Request, o Outcome) error {
	g.inFlight.Add(-1)
	g.count(r, o)
	return g.shed()
}

func (g *Shedder) shed() *ShedError {
	return &ShedError{RetryAfter: RetryAfter(g.lasted(&g.since)), Short: Processor}
}

func (g *Shedder) count(r *Request, o Outcome) {
	g.results[r.Class][o].Add(1)
	g.observe(r, o)
}
