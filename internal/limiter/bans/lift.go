package bans

import (
	"context"
	"errors"
	"fmt"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// liftTries is how often Lift retries if the ban changes at the same time.
const liftTries = 5

// Find returns the stored ban of a key if an operator can lift it: an active ban or, with forget,
// one that is not forgotten. The error is or wraps ErrNotFound if there is no such ban.
func (b *Bans) Find(ctx context.Context, k ratelimit.Key, forget bool) (Ban, error) {
	k = k.Bounded()
	ban, err := b.o.Store.Ban(ctx, k)
	if have := b.enforced.get(k); errors.Is(err, ErrNotFound) || err == nil && have.Version > ban.Version {
		ban, err = have, nil // not stored yet, but in force here
	}
	now := b.o.Clock()
	if err == nil && !ban.Active(now) && (!forget || !now.Before(ban.Forget)) {
		err = ErrNotFound
	}
	return ban, err
}

// Lift ends the ban of a key, at once on this instance and within two seconds on the others. With
// forget, the next ban counts as the first. Lift returns the ban before and after. The error is or
// wraps ErrNotFound if there is no ban to lift.
func (b *Bans) Lift(ctx context.Context, k ratelimit.Key, forget bool) (before, after Ban, err error) {
	k = k.Bounded()
	for range liftTries {
		if before, err = b.Find(ctx, k, forget); err != nil {
			return before, after, err
		}
		after = before.Lift(b.o.Clock(), forget)
		var stored Ban
		if err = b.o.Store.PutBan(ctx, after); err == nil {
			stored, err = b.o.Store.Ban(ctx, k)
		}
		if err != nil {
			break
		}
		if stored.same(&after) {
			b.adopt([]Ban{after})
			return before, after, nil
		}
		err = store.ErrConflict
	}
	return before, after, fmt.Errorf("lift a ban: %w", err)
}

// FindDryRun returns the dry-run ban of a key on this instance, or false.
func (b *Bans) FindDryRun(k ratelimit.Key) (Ban, bool) {
	return b.dryRun.load().Get(name(k.Bounded()))
}

// LiftDryRun removes the dry-run ban of a key on this instance. The next one counts as the first.
func (b *Bans) LiftDryRun(k ratelimit.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dryRun.edit(func(e *ratelimit.MapEdit[Ban]) { e.Delete(name(k.Bounded())) })
}
