package app

import (
	"context"
	"log/slog"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/metrics"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/watched"
	"oauth-server/internal/syncer"
)

// openSyncer makes the counters, and what shares the counts with the other instances, and with
// the next start of this one.
func (s *Server) openSyncer(context.Context) error {
	s.counters = ratelimit.NewCounters(s.cfg.RateLimit.MaxKeys)
	cfg := syncer.DefaultConfig()
	cfg.Interval = s.cfg.Sync.Interval.Std()
	cfg.Clock, cfg.Log = s.clock, s.log
	cfg.Report = func() []byte { return s.admin.Report() } //nolint:contextcheck // sent with heartbeats, outside of any request
	cfg.Observer = s.telemetry
	s.syncer = syncer.New(s.counters, watched.NewCounters(s.store, s.telemetry), s.store, cfg)
	s.syncStats.read = s.syncer.Stats
	s.telemetry.WatchSync(func() metrics.Sync { return shownSync(s.syncStats.get()) })
	s.telemetry.WatchClock(func() (wall, store time.Duration) {
		st := s.syncStats.get().Clock
		return st.Wall, st.Store
	})
	return nil
}

// startSyncer begins to share. It is stopped after the last request was
// answered, and writes what is left; what it cannot write is reported, and
// does not make the stop a failure: it was asked for.
func (s *Server) startSyncer(ctx context.Context) {
	s.syncer.Start(ctx)
	s.undo.push("sharing the counts", func(ctx context.Context) error {
		s.endLoops() // they have no more work; an absent store may keep some of them for a while
		ctx, cancel := most(ctx)
		defer cancel()
		left, err := s.syncer.Stop(ctx)
		s.telemetry.SyncLeftover(left.Requests)
		if err != nil {
			s.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "counts were left behind that other instances do not know of",
				slog.Int("keys", left.Keys), slog.Int64("requests", left.Requests), slog.Any("error", err))
		}
		return nil
	})
}

// most leaves a quarter of the time to what is stopped next.
func most(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*3/4)
}

// Call implements [syncer.Observer].
func (t *telemetry) Call(op syncer.Op, items int, took time.Duration, err error) {
	t.SyncCall(string(op), items, took, err != nil)
}

func shownSync(st syncer.Stats) metrics.Sync {
	return metrics.Sync{
		GAge: st.Age, Late: st.Late, Unconfirmed: st.Unconfirmed, Degraded: st.DegradedFor, Stalled: st.Stalled,
		Waiting: st.Waiting, Due: st.Due, Instances: st.Instances,
		Applied: st.Applied - st.Fallback, Fallback: st.Fallback,
		Conflicts: st.Conflicts, Unknown: st.Unknown, Rejected: st.Rejected,
		Foreign: st.Foreign, Drift: st.Drift, Clones: st.Clones, Panics: st.Panics,
	}
}

// syncState is what operators see of it.
func (s *Server) syncState() adminapi.SyncState {
	st := s.syncStats.get()
	return adminapi.SyncState{
		Keys: s.counters.Stats().Keys, Dirty: int64(st.Waiting), Degraded: st.Degraded, Outage: st.Stalled,
		StaleMillis: st.Late.Milliseconds(), UnconfirmedMillis: st.Unconfirmed.Milliseconds(),
		ClockAlone: string(st.Clock.Alone), WallOffset: st.Clock.Wall.Seconds(), StoreOffset: st.Clock.Store.Seconds(),
	}
}
