package syncer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/clock"
)

// clockSamples is how often the store's clock is read at the start: the quickest
// answer is the most exact.
const clockSamples = 3

// readClock reads the store's clock, to within half of the round trip; nil if it
// has none, or does not answer.
func (s *Syncer) readClock(ctx context.Context, samples int) *clock.Reading {
	var best *clock.Reading
	for range samples {
		var theirs time.Time
		took, err := s.withTimeout(ctx, 1, func(ctx context.Context) (err error) {
			theirs, err = s.store.Now(ctx)
			return err
		})
		if errors.Is(err, ErrNoClock) {
			return nil
		}
		s.recordCall(OpClock, 1, took, err)
		if best != nil {
			best.Time = best.Time.Add(took) // it has aged, also if this sample failed
		}
		if err != nil {
			return best
		}
		if best == nil || took/2 < best.Error {
			best = &clock.Reading{Time: theirs.Add(took / 2), Error: took / 2}
		}
	}
	return best
}

// meet sets the clock and stores the first heartbeat. Where the wall clock and
// the store disagree, the others are asked: it waits for heartbeats that they
// have stored by the clock that the store has now.
func (s *Syncer) join(ctx context.Context) {
	reading := s.readClock(ctx, clockSamples)
	state := s.clock.Begin(reading, nil)
	alive := s.storeHeartbeat(ctx)
	if state.Alone != clock.NoClock && len(alive) > 1 {
		alive = s.awaitPeers(ctx, alive)
		if reading = s.readClock(ctx, clockSamples); reading != nil {
			state = s.clock.Begin(reading, s.peerTimes(alive))
		}
	}
	s.stats.clock.Store(&state)
	s.logClock(state, clock.NoClock)
}

// awaitPeers returns the heartbeats of all instances once each of the others has
// stored one since this began, or after the time in which they should have.
func (s *Syncer) awaitPeers(ctx context.Context, alive []Instance) []Instance {
	first := s.ownBeat(alive)
	for wait := s.cfg.Beat*3/2 + time.Second; wait > 0; wait -= s.cfg.Beat / 4 {
		if !background.Sleep(ctx, s.cfg.Beat/4) {
			return alive
		}
		if again := s.storeHeartbeat(ctx); again != nil {
			alive = again
		}
		fresh := 0
		for _, i := range alive {
			if i.Beaten.After(first) && !s.identity.own(i.ID) {
				fresh++
			}
		}
		if fresh >= len(alive)-1 {
			break
		}
	}
	return alive
}

// beat stores a heartbeat and compares the clocks.
func (s *Syncer) beat(ctx context.Context) {
	before := s.clock.State().Alone
	alive := s.storeHeartbeat(ctx)
	state := s.clock.Adjust(s.readClock(ctx, 1), s.peerTimes(alive)) // a reading ages quickly
	s.stats.clock.Store(&state)
	s.logClock(state, before)
}

// announce stores a heartbeat, and returns those of all live instances; nil if
// that failed.
func (s *Syncer) storeHeartbeat(ctx context.Context) []Instance {
	if s.instances == nil {
		return nil
	}
	self := Instance{ID: s.ID(), Time: s.clock.Now().UTC(), Nonce: s.identity.nonce()}
	if s.cfg.Report != nil {
		self.Report = s.cfg.Report()
	}
	var alive []Instance
	var previous string
	took, err := s.withTimeout(ctx, 1, func(ctx context.Context) (err error) {
		alive, previous, err = s.instances.Beat(ctx, self, beatsToLive*s.cfg.Beat)
		return err
	})
	s.recordCall(OpBeat, 1, took, err)
	if err != nil {
		s.outage.begin() // also where nothing is exchanged that could fail
		s.countOthers(ctx)
		return nil
	}
	s.endIdleOutage()
	if s.identity.stored(previous) {
		s.takeNewID(self.ID)
	}
	s.setAlive(alive, len(alive))
	return alive
}

// assumedInstances is how many instances there are taken to be where the store has
// never said it.
const assumedInstances = 10

// lookAround counts the instances where this one cannot store a heartbeat and has
// not counted them before.
func (s *Syncer) countOthers(ctx context.Context) {
	if s.alive.Load() != nil {
		return
	}
	_, err := s.withTimeout(ctx, 1, func(ctx context.Context) error {
		others, err := s.instances.Alive(ctx, beatsToLive*s.cfg.Beat)
		if err == nil {
			s.setAlive(others, len(others)+1)
		}
		return err
	})
	if err != nil {
		s.sync.SetInstances(assumedInstances)
	}
}

// meetAll takes over which instances are alive, and how many with this one.
func (s *Syncer) setAlive(alive []Instance, n int) {
	ids := make(map[string]bool, len(alive))
	for _, i := range alive {
		ids[i.ID] = true
	}
	s.alive.Store(&ids)
	s.stats.instances.Store(int64(n))
	s.sync.SetInstances(n)
}

// peerTimes are the process times of the other instances now: what they stored,
// and what has passed since by the store's clock.
func (s *Syncer) peerTimes(alive []Instance) (times []time.Time) {
	now := s.ownBeat(alive)
	for _, i := range alive {
		if !s.identity.own(i.ID) && !i.Time.IsZero() {
			times = append(times, i.Time.Add(now.Sub(i.Beaten)))
		}
	}
	return times
}

// ownBeat is when the store took the latest heartbeat of this instance.
func (s *Syncer) ownBeat(alive []Instance) (at time.Time) {
	for _, i := range alive {
		if s.identity.own(i.ID) && i.Beaten.After(at) {
			at = i.Beaten
		}
	}
	return at
}

// logClock logs when a clock begins or ends to disagree, and when process time
// was set.
func (s *Syncer) logClock(st clock.State, before clock.Source) {
	attrs := []any{slog.Duration("wall_ahead", st.Wall.Round(time.Millisecond)), slog.Duration("store_ahead", st.Store.Round(time.Millisecond))}
	switch {
	case st.Stepped > 0:
		s.cfg.Log.Warn("process time set forwards: wall clock and store agree against it", append(attrs, slog.Duration("by", st.Stepped))...)
	case st.Alone != clock.NoClock && st.Alone != before:
		s.cfg.Log.Warn("clocks disagree; process time goes on", append(attrs, slog.String("alone", string(st.Alone)))...)
	case st.Alone == clock.NoClock && before != clock.NoClock:
		s.cfg.Log.Info("clocks agree again", attrs...)
	}
}

// renew takes another ID after another process was found to use this one.
func (s *Syncer) takeNewID(old string) {
	if id, renewed := s.identity.replace(old); renewed {
		s.stats.clones.Add(1)
		s.cfg.Log.Warn("another process runs under the ID of this one, a copy of it: took another",
			slog.String("old", old), slog.String("new", id))
	}
}

// leave removes the heartbeat of this instance.
func (s *Syncer) leave(ctx context.Context) {
	if s.instances == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.instances.Leave(ctx, s.ID()); err != nil {
		s.cfg.Log.Warn("heartbeat not removed; it lapses by itself", "error", err)
	}
}
