package syncer

import (
	"context"
	"time"
)

// clockSamples is how often the store's clock is read each time: the quickest
// answer tells best.
const clockSamples = 3

// clock measures by how much the store's clock is ahead of ours, to within
// half of the quickest round trip, and lets the counters use it. It returns
// when to look again.
func (s *Syncer) clock(ctx context.Context) time.Duration {
	var offset time.Duration
	quickest := time.Duration(-1)
	for range clockSamples {
		var theirs time.Time
		began, ours := time.Now(), s.cfg.Now()
		err := s.call(ctx, OpClock, 1, func(ctx context.Context) (err error) {
			theirs, err = s.store.Now(ctx)
			return err
		})
		if err != nil {
			s.cfg.Log.Warn("clock of the store not read", "error", err)
			break
		}
		if took := time.Since(began); quickest < 0 || took < quickest {
			quickest, offset = took, theirs.Sub(ours.Add(took/2))
		}
	}
	if quickest < 0 {
		return s.cfg.Beat
	}
	s.stats.offset.Store(int64(offset))
	s.counters.SetOffset(offset)
	return s.cfg.ClockEvery
}

// beat says that this instance is alive, and learns how many are. It returns
// when to beat again.
func (s *Syncer) beat(ctx context.Context) time.Duration {
	if s.others == nil {
		return s.cfg.ClockEvery
	}
	self := s.Self()
	var alive []Instance
	err := s.call(ctx, OpBeat, 1, func(ctx context.Context) (err error) {
		alive, err = s.others.Beat(ctx, self, beatsToLive*s.cfg.Beat)
		return err
	})
	if err != nil {
		s.cfg.Log.Warn("instance not announced", "error", err)
		return s.cfg.Beat
	}
	s.stats.instances.Store(int64(len(alive)))
	s.counters.SetInstances(len(alive))
	return s.cfg.Beat
}

// Self is this instance, as the others see it.
func (s *Syncer) Self() Instance {
	st := s.Stats()
	return Instance{
		ID: s.id, Host: s.cfg.Host, Version: s.cfg.Version, Started: s.began.Round(0).UTC(),
		Keys: s.counters.Stats().Keys, Dirty: int64(st.WritesWaiting), Degraded: st.Degraded,
		Offset: st.Offset, Interval: s.cfg.Interval,
	}
}

func (s *Syncer) leave(ctx context.Context) {
	if s.others == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.others.Leave(ctx, s.id); err != nil {
		s.cfg.Log.Warn("instance not signed off", "error", err)
	}
}

// sweep drops idle counters, and returns when to do so again.
func (s *Syncer) sweep(context.Context) time.Duration {
	s.counters.Sweep(s.cfg.Now())
	return s.cfg.SweepEvery
}
