package admission

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// How often the wait is measured and the level is set.
const beat = 25 * time.Millisecond

// forgetAfter is how long nothing must have been refused for an overload to be over.
const forgetAfter = 5 * time.Second

// mostInDryRun bounds the share that would be refused in dry-run. Nothing is refused then, so the wait does not fall,
// and how much would have had to be refused cannot be known.
const mostInDryRun = 0.5

// Run measures and controls until ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	p, err := newProbe()
	if err != nil {
		return err
	}
	defer p.close()
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			g.level.Store(0)
			return nil
		case <-beats.C:
		}
		wait, err := p.measure()
		if err != nil {
			return err
		}
		now := time.Now()
		g.beat(now, now.Sub(last), wait)
		last = now
	}
}

// beat takes a measured wait, after the time dt, and sets what is refused.
func (g *Gate) beat(now time.Time, dt, measured time.Duration) {
	s := g.settings.Load()
	dt = min(dt, 10*beat) // after a pause of the process
	wait := g.waits.add(measured)
	g.wait.Store(int64(wait))
	g.demand.fold(dt)
	if now.Sub(g.began) >= period {
		g.clients.turn()
		g.began = now
	}
	g.elapsed.Store(math.Float64bits(now.Sub(g.began).Seconds() / period.Seconds()))
	if s.Mode == ratelimit.Off {
		g.control = controller{last: wait}
		g.refused.Store(0)
		g.set(now, 0)
		return
	}
	most := 1.0
	if s.Mode == ratelimit.DryRun {
		most = mostInDryRun
	}
	at := g.demand.level(g.control.refused).upTo()
	target := time.Duration(targetFactor[max(at, ratelimit.Sheddable)] * float64(s.Target))
	share := g.control.step(wait, target, dt, g.demand.rate, most)
	g.refused.Store(math.Float64bits(share))
	g.set(now, g.demand.level(share))
}

// set sets what is refused, and since when.
func (g *Gate) set(now time.Time, l level) {
	g.level.Store(uint32(l))
	g.since.Store(g.overload.follow(now, l > 0, forgetAfter))
	g.useless.Store(g.helpless.follow(now, g.demand.refused(l, ratelimit.CriticalPlus) > nearlyAll, 0))
}

// nearlyAll is the share of the most critical requests from which on refusing does no good any more.
const nearlyAll = 0.9

// episode is the time for which a condition has held. It ends once the condition has not held for a while.
type episode struct{ began, held time.Time }

// follow takes whether the condition holds now. It returns when the episode began in Unix nanoseconds, 0 if there
// is none.
func (e *episode) follow(now time.Time, holds bool, forget time.Duration) int64 {
	switch {
	case holds && e.began.IsZero():
		e.began, e.held = now, now
	case holds:
		e.held = now
	case now.Sub(e.held) >= forget:
		*e = episode{}
	}
	if e.began.IsZero() {
		return 0
	}
	return e.began.UnixNano()
}

// standingWait is the shortest of the last waits: what is left when bursts have passed (as in CoDel, RFC 8289
// section 3.1). A collection of garbage or a password that is hashed makes single waits long.
type standingWait struct {
	last [5]time.Duration
	next int
}

func (w *standingWait) add(d time.Duration) time.Duration {
	w.last[w.next] = d
	w.next = (w.next + 1) % len(w.last)
	return slices.Min(w.last[:])
}

// Stats returns the state of the gate.
func (g *Gate) Stats() Stats {
	now, l := time.Now(), level(g.level.Load())
	st := Stats{
		Mode: g.settings.Load().Mode, Wait: time.Duration(g.wait.Load()), Refused: math.Float64frombits(g.refused.Load()),
		UpTo: l.upTo(), Overloaded: sinceNanos(now, &g.since), Useless: sinceNanos(now, &g.useless), InFlight: int(g.inFlight.Load()),
	}
	for c := range g.results {
		for o := range g.results[c] {
			st.Requests[c][o] = g.results[c][o].Load()
		}
	}
	return st
}

func sinceNanos(now time.Time, at *atomic.Int64) time.Duration {
	if n := at.Load(); n != 0 {
		return max(1, now.Sub(time.Unix(0, n)))
	}
	return 0
}
