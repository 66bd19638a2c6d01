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
	Class       Class
	Criticality ratelimit.Criticality // set by the policy of the client, or unset
	Trusted     bool
}

// Observer is called with every request that a gate did not simply admit: it must not block.
type Observer func(ctx context.Context, r *Request, o Outcome)

// Gate refuses requests while work waits too long for the processor, or too many requests are being worked on. It is
// safe for concurrent use.
type Gate struct {
	settings atomic.Pointer[Settings]
	observe  Observer
	demand   demand
	clients  clients

	// of Run
	control            controller
	waits              standingWait
	began              time.Time // of the period of clients
	overload, helpless episode

	refused  atomic.Uint64 // float64: share of requests
	level    atomic.Uint32 // what is refused, or in dry-run would be
	elapsed  atomic.Uint64 // float64: share of the period of clients that is over
	since    atomic.Int64  // when the overload began, Unix nanoseconds; 0: there is none
	useless  atomic.Int64  // the same, of the most critical requests
	wait     atomic.Int64
	inFlight atomic.Int64
	results  [Classes][Outcomes]atomic.Uint64
}

// New makes a gate, which admits everything until Run is called. observe may be nil.
func New(s Settings, observe Observer) *Gate {
	g := &Gate{observe: observe, began: time.Now()}
	g.settings.Store(&s)
	return g
}

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
	l := level(g.level.Load())
	if l > 0 && callerGone(ctx) {
		return 0, g.refuse(ctx, r, Abandoned)
	}
	if l.refuses(rank, rand.Uint32()%levelUnit) || inFlight > room(s.MaxInFlight, rank) { //nolint:gosec // G404: spreads load
		if s.Mode == ratelimit.Enforce {
			return 0, g.refuse(ctx, r, Shed)
		}
		g.count(ctx, r, WouldShed)
		return rank, nil
	}
	g.results[r.Class][Admitted].Add(1)
	return rank, nil
}

// Leave ends a request that was admitted.
func (g *Gate) Leave() { g.inFlight.Add(-1) }

// Used takes the share of its limit that a client has used, as the limiter has decided; above 1 is as 1.
func (g *Gate) Used(clientID string, usage float64) { g.clients.used(clientID, usage) }

func (g *Gate) rank(r *Request) Rank {
	at := unknown
	if r.ClientID != "" {
		at = g.clients.standing(g.clients.count(r.ClientID), math.Float64frombits(g.elapsed.Load()))
	}
	return rankOf(r.Class.criticality(r.Criticality, r.Trusted), r.Class, at)
}

// room is how many requests may be worked on for one of the rank to be admitted: the last tenth of the maximum is
// for the most critical, the one before for the next, and so on.
func room(most int, r Rank) int64 {
	tenths := 10 - int(ratelimit.CriticalPlus-r.criticality())
	return int64(most * tenths / 10)
}

func (g *Gate) refuse(ctx context.Context, r *Request, o Outcome) error {
	g.inFlight.Add(-1)
	g.count(ctx, r, o)
	var lasted time.Duration
	if since := g.since.Load(); since != 0 {
		lasted = time.Duration(time.Now().UnixNano() - since)
	}
	return &ShedError{RetryAfter: RetryAfter(lasted), Short: Processor}
}

func (g *Gate) count(ctx context.Context, r *Request, o Outcome) {
	g.results[r.Class][o].Add(1)
	if g.observe != nil {
		g.observe(ctx, r, o)
	}
}
