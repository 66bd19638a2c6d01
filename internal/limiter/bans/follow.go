package bans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"oauth-server/internal/ratelimit"
)

// allEvery is the average interval between two reads of all bans. A full read finds bans that were
// missed, and removes forgotten ones.
const allEvery = 5 * time.Minute

// Refresh reads the bans that are newer than the last read, and stores waiting bans. It also
// returns an error if there was no room for a ban since the last call.
func (b *Bans) Refresh(ctx context.Context) error {
	return errors.Join(b.follow(ctx), b.Flush(ctx), b.checkRoom())
}

// checkRoom returns an error if there was no room for a ban since the last call.
func (b *Bans) checkRoom() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused == 0 {
		return nil
	}
	b.refused = 0
	return fmt.Errorf("maximum of %d bans reached; banning no more", Max)
}

// Run stores bans as they begin, until ctx ends. Refresh retries bans that could not be stored.
func (b *Bans) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
			_ = b.Flush(ctx) // Refresh reports errors
		}
	}
}

// Flush stores the waiting bans. Of several bans of one version, which several instances began, the
// first is stored. So a ban waits until it was read back, or another one in its place.
func (b *Bans) Flush(ctx context.Context) error {
	var first error
	waiting, failed := b.toStore(), 0
	for _, ban := range waiting {
		if err := b.o.Store.PutBan(ctx, ban); err != nil {
			first, failed = cmp.Or(first, err), failed+1
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first != nil {
		first = fmt.Errorf("store bans: %d of %d failed: %w", failed, len(waiting), first)
	}
	if failed < len(waiting) {
		first = errors.Join(first, b.follow(ctx))
	}
	return first
}

// toStore returns the waiting bans.
func (b *Bans) toStore() (waiting []Ban) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.enforced.load()
	for key := range b.waiting {
		if ban, ok := all.Get(key); ok {
			waiting = append(waiting, ban)
		}
	}
	return waiting
}

// dropReplaced drops bans that the store no longer has, or has in another state: they changed, or
// the store was restored from a backup. was is the table before the read of all bans. Bans that
// have changed since then are kept.
func (b *Bans) dropReplaced(was ratelimit.Map[Ban], list []Ban) {
	stored := make(map[string]*Ban, len(list))
	for i := range list {
		stored[name(list[i].Key)] = &list[i]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(&b.enforced, func(key string, have Ban) bool {
		old, there := was.Get(key)
		return there && have == old && (stored[key] == nil || !stored[key].same(&have))
	})
}

// adopt replaces bans by newer stored ones. A stored ban also replaces a waiting one of its version.
func (b *Bans) adopt(list []Ban) {
	for _, ban := range b.takeOver(list) {
		b.o.Began(ban, ratelimit.Enforce)
	}
}

// takeOver is adopt, with the mutex held. It returns the bans that this instance began.
func (b *Bans) takeOver(list []Ban) (began []Ban) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, known := b.o.Clock(), b.enforced.load()
	b.enforced.edit(func(e *ratelimit.MapEdit[Ban]) {
		for _, s := range list {
			key := name(s.Key)
			have, there := known.Get(key)
			_, waits := b.waiting[key]
			switch {
			case !now.Before(s.Expires()):
				continue
			case waits && s.same(&have):
				began = append(began, s)
			case waits && s.Version >= have.Version: // another instance was first
			case there && s.Version <= have.Version && now.Before(have.Expires()): // after it expires, the next one may start at version 1
				continue
			case !there && known.Len() >= Max:
				continue
			}
			delete(b.waiting, key)
			e.Set(key, s)
		}
	})
	return began
}

// follow reads the bans stored since the last read, and at intervals all bans.
func (b *Bans) follow(ctx context.Context) error {
	if err := b.following.Acquire(ctx, 1); err != nil {
		return err
	}
	defer b.following.Release(1)
	now := b.o.Clock()
	all := !now.Before(b.allAt)
	if b.o.Store != nil {
		if err := b.read(ctx, all); err != nil {
			return fmt.Errorf("read bans: %w", err)
		}
	}
	if all {
		b.forget(now)
		b.allAt = now.Add(allEvery*4/5 + rand.N(allEvery*2/5)) //nolint:gosec // spreads the instances
	}
	return nil
}

// read adopts the bans stored since the last read began, or all bans.
func (b *Bans) read(ctx context.Context, all bool) (err error) {
	if all {
		if b.clock, err = b.o.Store.Now(ctx); err != nil {
			return err
		}
		b.readAt = time.Now()
	}
	began, since := time.Now(), b.clock.Add(b.followed.Sub(b.readAt))
	if all {
		since = time.Time{}
	}
	was := b.enforced.load()
	list, err := b.o.Store.Bans(ctx, since)
	if err != nil {
		return err
	}
	b.followed = began
	if all {
		b.dropReplaced(was, list)
	}
	if len(list) > 0 {
		b.adopt(list)
	}
	return nil
}

// forget drops the bans that have ended and are forgotten.
func (b *Bans) forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range []*table{&b.enforced, &b.dryRun, &b.tried} {
		b.drop(t, func(_ string, ban Ban) bool { return !now.Before(ban.Expires()) })
	}
}

// drop removes bans from a table, except waiting ones. The mutex must be held.
func (b *Bans) drop(t *table, gone func(key string, ban Ban) bool) {
	var keys []string
	for key, ban := range t.load().All() {
		if _, waits := b.waiting[key]; !waits && gone(key, ban) {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		t.edit(func(e *ratelimit.MapEdit[Ban]) {
			for _, key := range keys {
				e.Delete(key)
			}
		})
	}
}
