package app

import (
	"context"
	"log/slog"
	"time"

	"oauth-server/internal/grants"
)

// sweep removes what has expired.
func sweep(s grants.Sweeper, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		n, err := s.Sweep(ctx, time.Now())
		if n > 0 {
			log.LogAttrs(ctx, slog.LevelDebug, "swept what has expired", slog.Int("entries", n))
		}
		return err
	}
}
