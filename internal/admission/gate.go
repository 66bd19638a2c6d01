package admission

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// Request is what a [Gate] decides about.
type Request struct {
	ClientID    string // empty if it is not known
	Source      string // where it comes from, of a client that everyone can send requests as
	Class       Class
	Criticality ratelimit.Criticality // set by the policy of the client, or unset
	Trusted     bool

	WouldShed bool // set by the gate, in dry-run: the request was admitted and would have been refused
}

// Observer is called with every request that a gate did not simply admit: it must not block.
type Observer func(ctx context.Context, r *Request, o Outcome)

// Gate refuses requests while work waits too long for the processor, or too many requests are being worked on. It is
// safe for concurrent use.
type Gate struct {
	settings atomic.Pointer[Settings]
	observe  Observer
	started  time.Time // what times count from, so that no wall clock matters
	demand   demand
	clients  clients

	// of Run
	control            controller
	waits              standingWait
	began              time.Time // of the period of clients
	overload, helpless episode
	mode               ratelimit.Mode // at the last beat
	busy               func(time.Duration) bool
	gone               atomic.Uint64 // callers who had hung up when they were let in, since the last beat
	lost               float64       // of these a second, lately

	refused  atomic.Uint64 // float64: share of requests
	level    atomic.Uint32 // what is refused, or in dry-run would be
	elapsed  atomic.Uint64 // float64: share of the period of clients that is over
	since    atomic.Int64  // when the overload began, by uptime; 0: there is none
	useless  atomic.Int64  // the same, of the most critical requests
	crowded  atomic.Uint32 // highest rank + 1 for which there was no room since the last beat; 0: there was
	upTo     atomic.Uint32 // criticality of which some are refused
	wait     atomic.Int64
	inFlight atomic.Int64
	results  [Classes][Outcomes]atomic.Uint64
	starved  [Classes][Outcomes]atomic.Int64 // requests that are still counted as admitted, or as would_shed
}

// New makes a gate, which admits everything until Run is called. observe may be nil.
func New(s Settings, observe Observer) *Gate {
	now := time.Now()
	g := &Gate{observe: observe, started: now, began: now, busy: new(processorUse).busy}
	g.settings.Store(&s)
	return g
}

// SetQuota takes how many processors a quota of processor time leaves the process, 0 if there is none: what uses half of
// its quota waits for itself, however many processors there are. It is called before Run.
func (g *Gate) SetQuota(processors float64) { g.busy = (&processorUse{quota: processors}).busy }

// Set changes the settings.
func (g *Gate) Set(s Settings) { g.settings.Store(&s) }

// Admit returns nil if the request is to be worked on, and its rank: then the caller calls Leave in the end. Errors:
// *[ShedError].
func (g *Gate) Admit(ctx context.Context, r *Request) (Rank, error) {
	s := g.settings.Load()
	if s.Mode == ratelimit.Off {
		g.inFlight.Add(1)
		return g.rank(r), nil
	}
	rank := g.rank(r)
	g.demand.arrived[rank].Add(1)
	inFlight := g.inFlight.Add(1)
	l, enforced := level(g.level.Load()), s.Mode == ratelimit.Enforce
	late := l > 0 || time.Duration(g.wait.Load()) > s.Target // also where other programs use the processors
	if late && CallerGone(ctx) {
		g.gone.Add(1)
		if enforced {
			return 0, g.refuse(ctx, r, Abandoned)
		}
	}
	full := inFlight > room(s.MaxInFlight, rank)
	if full {
		g.noRoom(rank)
	}
	if full || l.refuses(rank, rand.Uint32()%levelUnit) { //nolint:gosec // G404: spreads load
		if enforced {
			return 0, g.refuse(ctx, r, Shed)
		}
		r.WouldShed = true
		if !g.balances(r.Class, WouldShed) {
			g.results[r.Class][WouldShed].Add(1)
		}
		g.report(ctx, r, WouldShed)
		return rank, nil
	}
	if !g.balances(r.Class, Admitted) {
		g.results[r.Class][Admitted].Add(1)
	}
	return rank, nil
}

// RefusingTokens reports whether token requests of clients without a criticality of their own are refused at the moment.
// While only what is less critical is refused, as sign-ins are, it is of no use to look at token requests early.
func (g *Gate) RefusingTokens() bool {
	return level(g.level.Load()) > levelOf(int(ratelimit.SheddablePlus-ratelimit.Sheddable)*perCriticality, 0) &&
		g.settings.Load().Mode == ratelimit.Enforce
}

// RefuseEarly refuses a request, of a known client, as Admit would, if that is sure to. Nil: it is to be asked.
func (g *Gate) RefuseEarly(ctx context.Context, r *Request) *ShedError {
	l := level(g.level.Load())
	elapsed := math.Float64frombits(g.elapsed.Load())
	standing := g.clients.look(r, g.clients.find(r.sender()), elapsed)
	rank := rankOf(r.Class.criticality(r.Criticality, r.Trusted), r.Class, standing)
	if g.settings.Load().Mode != ratelimit.Enforce || !l.refuses(rank, levelUnit-1) {
		return nil
	}
	g.clients.standing(r, elapsed)
	g.demand.arrived[rank].Add(1)
	if CallerGone(ctx) {
		g.gone.Add(1)
		g.count(ctx, r, Abandoned)
	} else {
		g.count(ctx, r, Shed)
	}
	return g.shed()
}

// Starved counts a request that was admitted, and that ctx carries, as refused for want of the processor: none is left
// for its password, in every mode. It returns *[ShedError].
func (g *Gate) Starved(ctx context.Context) error {
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
		g.count(ctx, r, Shed)
	}
	return g.shed()
}

// balances reports whether an outcome is not to be counted, because that of a request of the same class was counted
// that was starved later. What is counted never falls, and each request has one outcome.
func (g *Gate) balances(c Class, o Outcome) bool {
	starved := &g.starved[c][o]
	for n := starved.Load(); n > 0; n = starved.Load() {
		if starved.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// Leave ends a request that was admitted.
func (g *Gate) Leave() { g.inFlight.Add(-1) }

// Used takes the share of its limit that a client has used, as the limiter has decided; above 1 is as 1.
func (g *Gate) Used(clientID string, usage float64) { g.clients.used(clientID, usage) }

func (g *Gate) rank(r *Request) Rank {
	at := unknown
	if r.ClientID != "" {
		at = g.clients.standing(r, math.Float64frombits(g.elapsed.Load()))
	}
	return rankOf(r.Class.criticality(r.Criticality, r.Trusted), r.Class, at)
}

// room is how many requests may be worked on for one of the rank to be admitted: the last tenth of the maximum is
// for the most critical, the one before for the next, and so on.
func room(most int, r Rank) int64 {
	tenths := 10 - int(ratelimit.CriticalPlus-r.Criticality())
	return int64(most * tenths / 10)
}

// noRoom notes that a request of the rank had no room, or no processor.
func (g *Gate) noRoom(r Rank) {
	for {
		before := g.crowded.Load()
		if uint32(r) < before || g.crowded.CompareAndSwap(before, uint32(r)+1) {
			return
		}
	}
}

func (g *Gate) uptime() time.Duration { return time.Since(g.started) }

func (g *Gate) refuse(ctx context.Context, r *Request, o Outcome) error {
	g.inFlight.Add(-1)
	g.count(ctx, r, o)
	return g.shed()
}

func (g *Gate) shed() *ShedError {
	return &ShedError{RetryAfter: RetryAfter(g.lasted(&g.since)), Short: Processor}
}

func (g *Gate) count(ctx context.Context, r *Request, o Outcome) {
	g.results[r.Class][o].Add(1)
	g.report(ctx, r, o)
}

func (g *Gate) report(ctx context.Context, r *Request, o Outcome) {
	if g.observe != nil {
		g.observe(ctx, r, o)
	}
}
