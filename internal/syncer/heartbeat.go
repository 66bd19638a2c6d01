package syncer

import (
	"context"
	"log/slog"
	"time"

	"oauth-server/internal/background"
	"oauth-server/internal/syncer/clock"
)

// clockSamples is how many times the store's clock is read at the start. The quickest reading is
// used.
const clockSamples = 3

// readClock reads the store's clock samples times and returns the most exact reading. It returns
// nil if the store has no clock of its own or could not be read.
func (s *Syncer) readClock(ctx context.Context, samples int) *clock.Reading {
	var best *clock.Reading
	if s.instances == nil {
		return best
	}
	for range samples {
		var reading *clock.Reading
		took, err := s.within(ctx, s.cfg.Timeout, func(ctx context.Context) error {
			began := time.Now()
			theirs, err := s.store.Now(ctx)
			reading = clock.NewReading(theirs, began, time.Now())
			return err
		})
		s.cfg.Observer.Call(OpClock, 1, took, err) // heartbeats show whether the store answers
		if err != nil {
			return best
		}
		if best == nil || reading.Error < best.Error {
			best = reading
		}
	}
	return best
}

// join sets the clock and stores the first heartbeat. If the wall clock and the store disagree, it
// waits for new heartbeats of the other instances and sets the clock by the majority.
func (s *Syncer) join(ctx context.Context) {
	reading := s.readClock(ctx, clockSamples)
	state := s.clock.Begin(reading, nil)
	alive, _ := s.storeHeartbeat(ctx)
	if state.Alone != clock.NoClock && len(alive) > 1 {
		alive = s.awaitPeers(ctx, alive)
		if reading = s.readClock(ctx, clockSamples); reading != nil {
			state = s.clock.Begin(reading, s.peerTimes(alive))
		}
	}
	s.stats.clock.Store(&state)
	s.shareUncertainty()
	s.logClock(state, clock.NoClock)
}

// shareUncertainty passes on how far process time may differ from the store's. The only process of
// a store has no other time to differ from.
func (s *Syncer) shareUncertainty() {
	s.unsure.Lock() // an older value must not replace a newer one
	defer s.unsure.Unlock()
	u := s.clock.Uncertainty()
	if s.instances == nil {
		u = 0
	}
	s.sync.SetUncertainty(s.clock.Now(), u)
}

// awaitPeers returns the heartbeats of all instances once each other instance has stored a new one,
// or when there has been enough time for all to do so. Older heartbeats may have been stored under
// a previous clock of the store.
func (s *Syncer) awaitPeers(ctx context.Context, alive []Instance) []Instance {
	first := s.ownBeat(alive)
	for wait := s.cfg.Beat*3/2 + time.Second; wait > 0; wait -= s.cfg.Beat / 4 {
		if !background.Sleep(ctx, s.cfg.Beat/4) {
			return alive
		}
		if again, _ := s.storeHeartbeat(ctx); again != nil {
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

// watchClock detects that the machine was suspended, without waiting for the next heartbeat: that
// may hang in a store that does not answer.
func (s *Syncer) watchClock() {
	s.clock.Watch()
	s.shareUncertainty()
}

// beat stores a heartbeat and compares the clocks.
func (s *Syncer) beat(ctx context.Context) {
	before := s.clock.State().Alone
	alive, reading := s.storeHeartbeat(ctx)
	if reading == nil {
		reading = s.readClock(ctx, 1)
	}
	state := s.clock.Adjust(reading, s.peerTimes(alive))
	s.stats.clock.Store(&state)
	s.shareUncertainty()
	s.logClock(state, before)
}

// storeHeartbeat stores a heartbeat of this instance. It returns the heartbeats of all live
// instances, and the clock of the store as read by this heartbeat; nil if that failed, or if the
// store has no clock of its own. A failure begins an outage.
func (s *Syncer) storeHeartbeat(ctx context.Context) ([]Instance, *clock.Reading) {
	self := Instance{ID: s.ID(), Time: s.clock.Now().UTC(), Nonce: s.identity.nonce()}
	if s.cfg.Report != nil {
		self.Report = s.cfg.Report()
	}
	var alive []Instance
	var previous string
	began := s.elapsed()
	took, err := s.within(ctx, s.cfg.Timeout, func(ctx context.Context) (err error) {
		if s.instances == nil { // an exchange of nothing shows whether the store answers
			alive = []Instance{self}
			_, err = s.store.Exchange(ctx, nil)
			return err
		}
		alive, previous, err = s.instances.Beat(ctx, self, beatsToLive*s.cfg.Beat)
		return err
	})
	s.recordCall(OpBeat, 1, took, err)
	if err != nil {
		s.outage.begin(began, s.elapsed()) // an idle instance makes no exchanges, so only this failure can begin an outage
		if s.instances != nil && s.alive.Load() == nil {
			s.sync.SetInstances(assumedInstances)
		}
		return nil, nil
	}
	s.beaten.Store(int64(began+s.elapsed()) / 2)
	s.outage.beaten()
	s.endIdleOutage()
	if s.identity.stored(previous) {
		s.takeNewID(self.ID)
	}
	s.setAlive(alive)
	if s.instances == nil {
		return alive, nil
	}
	return alive, clock.NewReading(s.ownBeat(alive), s.began.Add(began), s.began.Add(began+took))
}

// assumedInstances is the number of instances to assume while no heartbeat was stored.
const assumedInstances = 10

// setAlive sets which instances are alive, including this one.
func (s *Syncer) setAlive(alive []Instance) {
	ids := make(map[string]bool, len(alive))
	for _, i := range alive {
		ids[i.ID] = true
	}
	s.alive.Store(&ids)
	s.stats.instances.Store(int64(len(alive)))
	s.sync.SetInstances(len(alive))
}

// peerTimes returns the process times of the other instances now. Each is the time in the heartbeat
// plus the time passed since then: measured by the store's clock up to the latest heartbeat of this
// instance, and by monotonic time from there on.
func (s *Syncer) peerTimes(alive []Instance) (times []time.Time) {
	now := s.ownBeat(alive).Add(s.elapsed() - time.Duration(s.beaten.Load()))
	for _, i := range alive {
		if !s.identity.own(i.ID) && !i.Time.IsZero() {
			times = append(times, i.Time.Add(now.Sub(i.Beaten)))
		}
	}
	return times
}

// ownBeat returns when the latest heartbeat of this instance was stored, by the store's clock.
func (s *Syncer) ownBeat(alive []Instance) (at time.Time) {
	for _, i := range alive {
		if s.identity.own(i.ID) && i.Beaten.After(at) {
			at = i.Beaten
		}
	}
	return at
}

// logClock logs when a clock begins to disagree, when all agree again, and when process time was
// stepped. before is the clock that disagreed until now.
func (s *Syncer) logClock(st clock.State, before clock.Source) {
	attrs := []any{slog.String("wall_ahead", st.Wall.Round(time.Millisecond).String()), slog.String("store_ahead", st.Store.Round(time.Millisecond).String())}
	switch {
	case st.Stepped > 0:
		s.cfg.Log.Warn("process time moved forward to match the wall and store clocks", append(attrs, slog.String("by", st.Stepped.String()))...)
	case st.Alone != clock.NoClock && st.Alone != before:
		s.cfg.Log.Warn("clocks disagree; process time stays", append(attrs, slog.String("alone", string(st.Alone)))...)
	case st.Alone == clock.NoClock && before != clock.NoClock:
		s.cfg.Log.Info("clocks agree again", attrs...)
	}
}

// takeNewID replaces the ID of this process if it is still old. Another process was found to use
// that ID.
func (s *Syncer) takeNewID(old string) {
	if id, renewed := s.identity.replace(old); renewed {
		s.stats.clones.Add(1)
		s.cfg.Log.Warn("a copy of this process uses its ID; continuing under a new ID",
			slog.String("old", old), slog.String("new", id))
	}
}

// leave deletes the heartbeat of this instance.
func (s *Syncer) leave(ctx context.Context) {
	if s.instances == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.instances.Leave(ctx, s.ID()); err != nil {
		s.cfg.Log.Warn("heartbeat not deleted; it will expire", slog.Any("error", err))
	}
}
