package clientcfg

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Run refreshes the directory about every interval until ctx ends. Each period
// is drawn from 0.75 to 1.25 intervals, so that many instances do not ask at
// once. A failure is logged when it begins and when it ends, not at every try.
func (s *Source) Run(ctx context.Context, interval time.Duration, log *slog.Logger) {
	follow(ctx, interval, log, "clients", s.Refresh)
}

func follow(ctx context.Context, interval time.Duration, log *slog.Logger, what string, refresh func(context.Context) error) {
	log = log.With(slog.String("what", what))
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(jitter(interval)):
		}
		err := refresh(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !failing:
			log.LogAttrs(ctx, slog.LevelError, "not refreshed, the last good ones stay", slog.Any("error", err))
		case err == nil && failing:
			log.LogAttrs(ctx, slog.LevelInfo, "refreshed again")
		}
		failing = err != nil
	}
}

func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2)) //nolint:gosec // spreads load; nothing to guess
}
