package app

import (
	"context"
	"log/slog"

	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
)

// newBans loads the stored bans.
func newBans(ctx context.Context, l *limiting) (*bans.Bans, error) {
	f := l.base
	return bans.New(ctx, bans.Options{
		Store: bans.NewRepository(f.data), Counters: l.counters, Clock: f.clock.Now,
		Policy: func(clientID string) *ratelimit.Effective { return l.policies.Snapshot().For(clientID) },
		Began:  l.banBegan,
	})
}

// banBegan counts and logs a new ban.
func (l *limiting) banBegan(b bans.Ban, m ratelimit.Mode) {
	outcome, message := ratelimit.Banned, "banned for retrying after denials"
	if m == ratelimit.DryRun {
		outcome, message = ratelimit.WouldBan, "would be banned for retrying after denials"
	}
	l.base.telemetry.BanBegan(b.ClientID, outcome)
	attrs := []slog.Attr{slog.String("client_id", b.ClientID)}
	if b.Username != "" {
		attrs = append(attrs, l.denials.user(b.Username))
	}
	attrs = append(attrs, slog.Time("until", b.Until), slog.String("for", b.Until.Sub(b.Since).String()), slog.Int("bans_before", b.Level))
	l.base.log.LogAttrs(context.Background(), slog.LevelWarn, message, attrs...) //nolint:sloglint // one of two constants
}
