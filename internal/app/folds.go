package app

import (
	"context"
	"errors"
	"log/slog"

	"oauth-server/internal/background"
)

// observeFolds counts and logs the folds of the trail of the policies, in a store that folds now and
// then: what is not folded has to be read at each start, and cannot be swept.
func (f *foundation) observeFolds() {
	store, ok := f.backend.(interface {
		ObserveFolds(begin func(context.Context) (context.Context, func(error)))
	})
	if !ok {
		return
	}
	var folds background.Streak
	store.ObserveFolds(func(ctx context.Context) (context.Context, func(error)) {
		ctx, end := f.telemetry.Begin(ctx, "fold_policies")
		return ctx, func(err error) {
			end(err != nil)
			switch {
			case errors.Is(ctx.Err(), context.Canceled) || !folds.Add(err):
			case err != nil:
				f.log.LogAttrs(ctx, slog.LevelError, "audit trail not folded; starts read more of it, and its old entries stay", slog.Any("error", err))
			default:
				f.log.LogAttrs(ctx, slog.LevelInfo, "audit trail is folded again")
			}
		}
	})
}
