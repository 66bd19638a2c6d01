package watched

import (
	"context"

	"oauth-server/internal/bans"
	"oauth-server/internal/ratelimit"
)

// Bans is a watched [bans.Store].
type Bans struct {
	backend  bans.Store
	observer Observer
}

// NewBans returns the store, watched.
func NewBans(b bans.Store, o Observer) *Bans { return &Bans{backend: b, observer: o} }

// Ban implements [bans.Store].
func (s *Bans) Ban(ctx context.Context, k ratelimit.Key) (bans.Ban, error) {
	ctx, end := s.observer.Begin(ctx, "read_ban")
	b, err := s.backend.Ban(ctx, k)
	end(Failed(err))
	return b, err
}

// PutBan implements [bans.Store].
func (s *Bans) PutBan(ctx context.Context, b bans.Ban, seen int64) error {
	ctx, end := s.observer.Begin(ctx, "store_ban")
	err := s.backend.PutBan(ctx, b, seen)
	end(Failed(err))
	return err
}

// Bans implements [bans.Store].
func (s *Bans) Bans(ctx context.Context, since bans.Mark) ([]bans.Ban, int64, error) {
	ctx, end := s.observer.Begin(ctx, "read_bans")
	list, next, err := s.backend.Bans(ctx, since)
	end(Failed(err))
	return list, next, err
}
