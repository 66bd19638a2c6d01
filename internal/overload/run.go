package overload

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
)

// beat is the interval between measurements of the wait and updates of the level.
const beat = 25 * time.Millisecond

// forgetAfter is the time without refusals after which an overload is over.
const forgetAfter = 5 * time.Second

// mostInDryRun bounds the share that would be refused in dry-run mode. Since nothing is refused,
// the wait does not fall, so the share that would be needed is unknown.
const mostInDryRun = 0.5

// Run measures and controls until ctx ends.
func (g *Shedder) Run(ctx context.Context) error {
	p, err := newProbe()
	if err != nil {
		return err
	}
	defer p.close()
	return g.run(ctx, p.measure)
}

// run implements Run with the waits from measure.
func (g *Shedder) run(ctx context.Context, measure func() (time.Duration, error)) error {
	defer g.level.Store(0) // without measurements, nothing must be refused
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-beats.C:
		}
		wait, err := measure()
		if err != nil {
			return err
		}
		now := time.Now()
		g.beat(now, now.Sub(last), wait)
		last = now
	}
}

// beat updates the refused level from a measured wait, dt after the last beat.
func (g *Shedder) beat(now time.Time, dt, measured time.Duration) {
	s := g.settings.Load()
	dt = max(1, min(dt, 10*beat)) // after a pause of the process; a coarse clock may show 0 between two beats
	wait := g.waits.add(measured)
	g.wait.Store(int64(wait))
	g.demand.fold(dt)
	if now.Sub(g.began) >= period {
		g.clients.nextPeriod()
		g.began = now
	}
	g.elapsed.Store(math.Float64bits(now.Sub(g.began).Seconds() / period.Seconds()))
	if s.Mode != g.mode { // data from the other mode is useless
		g.mode, g.control, g.overload, g.helpless = s.Mode, controller{last: wait}, episode{}, episode{}
	}
	share := 0.0
	if s.Mode != ratelimit.Off {
		share = g.share(s, wait, dt)
	}
	g.refused.Store(math.Float64bits(share))
	g.set(now, g.demand.level(share))
}

// share returns the share of requests to refuse at a wait.
func (g *Shedder) share(s *Settings, wait, dt time.Duration) float64 {
	losing := g.losing(dt)
	if !g.busy(dt) && !losing {
		wait = 0 // requests wait for other programs, and are still answered
	}
	most := g.demand.refusable(wait-g.stopped, s.Target)
	if s.Mode == ratelimit.DryRun {
		most = min(most, mostInDryRun)
	}
	at := max(g.demand.level(g.control.refused).upTo(), g.demand.lowest())
	return g.control.step(wait, g.target(s, at), dt, g.demand.rate, most)
}

// target returns the wait above which requests of a criticality are refused. Requests also wait
// while the process is stopped because it has used up its quota; refusing others does not change
// that.
func (g *Shedder) target(s *Settings, c ratelimit.Criticality) time.Duration {
	return g.stopped + time.Duration(targetFactor[c]*float64(s.Target))
}

// If at least leastLost callers per second, and at least lostShare of all, hang up before their
// turn, the requests exceed the processor time that other programs, or a quota, leave to the
// process, even if the process itself uses little.
const (
	leastLost = 5.0 // per second
	lostShare = 0.05
)

// losing reports whether more and more requests wait until their callers hang up.
func (g *Shedder) losing(dt time.Duration) bool {
	keep := math.Exp(-dt.Seconds() / memory.Seconds())
	g.lost = keep*g.lost + (1-keep)*float64(g.gone.Swap(0))/dt.Seconds()
	return g.lost >= max(leastLost, lostShare*g.demand.rate)
}

// set sets the refused level and updates the start of the overload.
func (g *Shedder) set(now time.Time, l level) {
	g.level.Store(uint32(l))
	shown := l
	if r := g.crowded.Swap(0); r > 0 {
		shown = max(l, levelOf(int(r), 0))
	}
	g.upTo.Store(uint32(shown.upTo())) //nolint:gosec // G115: a few values
	at := now.Sub(g.started)
	g.since.Store(int64(g.overload.follow(at, shown > 0, forgetAfter)))
	g.useless.Store(int64(g.helpless.follow(at, g.demand.ofHighest(l) > nearlyAll, time.Second)))
}

// nearlyAll is the refused share of the most critical requests above which refusing is useless.
const nearlyAll = 0.9

// episode is the time for which a condition has held. It ends when the condition has not held for a
// while.
type episode struct{ began, held time.Duration } // by uptime; 0: no episode

// follow updates the episode. It returns its start, or 0 if there is no episode.
func (e *episode) follow(now time.Duration, holds bool, forget time.Duration) time.Duration {
	switch {
	case holds && e.began == 0:
		e.began, e.held = max(1, now), now
	case holds:
		e.held = now
	case now-e.held >= forget:
		*e = episode{}
	}
	return e.began
}

// standingWait is the shortest of the last waits, which remains when bursts have passed (as in
// CoDel, RFC 8289 section 3.1). Garbage collection and password hashing make single waits long.
type standingWait struct {
	last [5]time.Duration
	next int
}

func (w *standingWait) add(d time.Duration) time.Duration {
	w.last[w.next] = d
	w.next = (w.next + 1) % len(w.last)
	return slices.Min(w.last[:])
}

// Stats returns the state of the shedder.
func (g *Shedder) Stats() Stats {
	st := Stats{
		Mode: g.settings.Load().Mode, Wait: time.Duration(g.wait.Load()), Refused: math.Float64frombits(g.refused.Load()),
		UpTo:       ratelimit.Criticality(g.upTo.Load()), //nolint:gosec // G115: set from one
		Overloaded: g.lasted(&g.since), Useless: g.lasted(&g.useless), InFlight: int(g.inFlight.Load()),
	}
	for c := range g.results {
		for o := range g.results[c] {
			st.Requests[c][o] = g.results[c][o].Load()
		}
	}
	return st
}

// lasted returns the time since began, or 0 if it is unset.
func (g *Shedder) lasted(began *atomic.Int64) time.Duration {
	if at := began.Load(); at != 0 {
		return max(1, g.uptime()-time.Duration(at))
	}
	return 0
}
