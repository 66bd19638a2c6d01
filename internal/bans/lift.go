package bans

import (
	"context"
	"errors"
	"fmt"

	"oauth-server/internal/cowmap"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// liftTries is how often a ban is lifted that is changed at the same time.
const liftTries = 5

// Find returns the ban of a key that an operator can lift, as it is stored: one that is in force, or with
// forget one that is not forgotten. The error is or wraps ErrNotFound if there is none.
func (b *Bans) Find(ctx context.Context, k ratelimit.Key, forget bool) (Ban, error) {
	k = k.Bounded()
	ban, err := b.o.Store.Ban(ctx, k)
	if errors.Is(err, ErrNotFound) { // the store has not got it yet, or cannot read it: it is in force here
		ban, err = b.enforced.get(k), nil
	}
	now := b.o.Clock()
	if err == nil && !ban.Active(now) && (!forget || !now.Before(ban.Forget)) {
		err = ErrNotFound
	}
	return ban, err
}

// Lift ends the ban of a key, on this instance at once and on the others within a second; forget: the next
// ban is a first one. It returns the ban as it was and as it is. The error is or wraps ErrNotFound if there
// is nothing to lift.
func (b *Bans) Lift(ctx context.Context, k ratelimit.Key, forget bool) (before, after Ban, err error) {
	k = k.Bounded()
	for range liftTries {
		if err = b.save(ctx, k); err != nil {
			return before, after, err
		}
		if before, err = b.Find(ctx, k, forget); err != nil {
			return before, after, err
		}
		after = before.Lift(b.o.Clock(), forget)
		if after.Seen, err = b.o.Store.PutBan(ctx, after); err == nil {
			b.adopt([]Ban{after})
			return before, after, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	return before, after, fmt.Errorf("lift a ban: %w", err)
}

// FindDryRun returns the ban of a key that this instance has in dry-run; false: there is none.
func (b *Bans) FindDryRun(k ratelimit.Key) (Ban, bool) {
	return b.dryRun.load().Get(name(k.Bounded()))
}

// LiftDryRun drops the ban of a key that this instance has in dry-run: the next one is a first one.
func (b *Bans) LiftDryRun(k ratelimit.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dryRun.edit(func(e *cowmap.Edit[Ban]) { e.Delete(name(k.Bounded())) })
}
