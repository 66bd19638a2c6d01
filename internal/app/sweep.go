package app

import (
	"context"
	"log/slog"
	"time"

	"oauth-server/internal/grants"
)

// sweep removes what has expired, by process time: a wall clock that is set must
// not delete what still counts.
func sweep(s grants.Sweeper, now func() time.Time, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		n, err := s.Sweep(ctx, now())
		if n > 0 {
			log.LogAttrs(ctx, slog.LevelDebug, "swept what has expired", slog.Int("entries", n))
		}
		return err
	}
}
