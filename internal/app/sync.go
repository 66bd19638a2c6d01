package app

import (
	"context"
	"log/slog"
	"os"
	"time"

	"oauth-server/internal/admin"
	"oauth-server/internal/metrics"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/watched"
	"oauth-server/internal/syncer"
)

// openSyncer makes the counters, and what shares the counts with the other instances, and with
// the next start of this one.
func (s *Server) openSyncer(context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	s.counters = ratelimit.NewCounters(s.cfg.RateLimit.MaxKeys)
	cfg := syncer.DefaultConfig()
	cfg.Interval = s.cfg.Sync.Interval.Std()
	cfg.Host, cfg.Version = host, thisBuild().Version
	cfg.Log = s.log
	cfg.Observer = s.telemetry
	s.syncer = syncer.New(s.counters, watched.NewCounters(s.store, s.telemetry), s.store, cfg)
	s.telemetry.WatchSync(func() metrics.Sync { return shownSync(s.syncer.Stats()) })
	s.telemetry.WatchClock(func() time.Duration { return s.syncer.Stats().Offset })
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
		GAge: st.Age, Late: st.Late, Degraded: st.DegradedFor,
		Dirty: st.WritesWaiting, Due: st.Due, Instances: st.Instances,
		Applied: st.Applied - st.Blind, Fallback: st.Blind,
		Conflicts: st.Conflicts, Unknown: st.Unknown, Rejected: st.Rejected,
		Foreign: st.Foreign, Drift: st.Drift, Panics: st.Panics,
	}
}

// syncState is what operators see of it.
func (s *Server) syncState() admin.SyncState {
	st := s.syncer.Stats()
	return admin.SyncState{
		Keys: s.counters.Stats().Keys, Dirty: int64(st.WritesWaiting), Degraded: st.Degraded,
		StaleMillis: st.Late.Milliseconds(), ClockOffset: st.Offset.Seconds(),
	}
}
