package bans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
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

// Flush stores the waiting bans. Bans that cannot be stored stay in the queue.
func (b *Bans) Flush(ctx context.Context) error {
	var first error
	keys, failed := b.toStore(), 0
	for _, k := range keys {
		if err := b.save(ctx, k); err != nil {
			first, failed = cmp.Or(first, err), failed+1
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first != nil {
		return fmt.Errorf("store bans: %d of %d failed: %w", failed, len(keys), first)
	}
	return nil
}

// toStore returns the keys of the waiting bans.
func (b *Bans) toStore() (keys []ratelimit.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.enforced.load()
	for key := range b.waiting {
		if ban, ok := all.Get(key); ok {
			keys = append(keys, ban.Key)
		}
	}
	return keys
}

// save stores a waiting ban. If another instance or an operator has stored a ban of the key in
// between, save adopts that one.
func (b *Bans) save(ctx context.Context, k ratelimit.Key) error {
	ban := b.enforced.get(k)
	if !b.isWaiting(k) {
		return nil // stored by another call
	}
	seen, err := b.o.Store.PutBan(ctx, ban)
	if errors.Is(err, store.ErrConflict) {
		var stored Ban
		if stored, err = b.o.Store.Ban(ctx, k); err == nil {
			if stored.Seen.Version <= ban.Seen.Version {
				b.giveUp(k, ban.Seen)
			}
			b.adopt([]Ban{stored})
			return nil
		}
		if errors.Is(err, ErrNotFound) { // the ban before it was forgotten
			ban.Seen = store.Seen{}
			seen, err = b.o.Store.PutBan(ctx, ban)
		}
	}
	ban.Seen = seen
	if err == nil && b.saved(ban) {
		b.o.Began(ban, ratelimit.Enforce)
	}
	return err
}

func (b *Bans) isWaiting(k ratelimit.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, is := b.waiting[name(k)]
	return is
}

// saved records that a ban is stored, and reports whether it was waiting until then: a read may
// have found it before. If the next ban of the key has begun since, that ban stays in the queue, to
// replace the stored one.
func (b *Bans) saved(ban Ban) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := name(ban.Key)
	if _, waits := b.waiting[key]; !waits {
		return false
	}
	have := b.enforced.get(ban.Key)
	if have.Since.Equal(ban.Since) {
		delete(b.waiting, key)
		have = ban
	}
	have.Seen = ban.Seen
	b.enforced.edit(func(e *ratelimit.MapEdit[Ban]) { e.Set(key, have) })
	return true
}

// giveUp drops a ban if the state that it was to replace is missing after a restore of the store
// from a backup.
func (b *Bans) giveUp(k ratelimit.Key, after store.Seen) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.enforced.get(k).Seen == after {
		delete(b.waiting, name(k))
		b.enforced.edit(func(e *ratelimit.MapEdit[Ban]) { e.Delete(name(k)) })
	}
}

// dropReplaced drops bans that the store no longer has, or has in another state: they changed, or
// the store was restored from a backup. was is the table before the read of all bans. Bans that
// have changed since then are kept.
func (b *Bans) dropReplaced(was ratelimit.Map[Ban], stored []Ban) {
	seen := make(map[string]store.Seen, len(stored))
	for i := range stored {
		seen[name(stored[i].Key)] = stored[i].Seen
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(&b.enforced, func(key string, have Ban) bool {
		old, there := was.Get(key)
		return there && have == old && seen[key] != have.Seen
	})
}

// adopt replaces bans by newer stored ones. A stored ban also replaces a waiting one.
func (b *Bans) adopt(list []Ban) {
	for _, ban := range b.takeOver(list) {
		b.o.Began(ban, ratelimit.Enforce)
	}
}

// takeOver is adopt, with the mutex held. It returns the bans that this instance stored itself by
// writes with a lost reply.
func (b *Bans) takeOver(list []Ban) (began []Ban) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, known := b.o.Clock(), b.enforced.load()
	b.enforced.edit(func(e *ratelimit.MapEdit[Ban]) {
		for _, s := range list {
			key := name(s.Key)
			have, there := known.Get(key)
			switch {
			case there && s.Seen.Version <= have.Seen.Version && now.Before(have.Expires()): // after it expires, the next one starts at version 1
			case !there && (known.Len() >= Max || !now.Before(s.Expires())):
			default:
				if _, waits := b.waiting[key]; waits && s.Since.Equal(have.Since) && s.Until.Equal(have.Until) {
					began = append(began, s)
				}
				delete(b.waiting, key)
				e.Set(key, s)
			}
		}
	})
	return began
}

// follow reads the bans stored since the last read, and at intervals all bans.
func (b *Bans) follow(ctx context.Context) error {
	b.following.Lock()
	defer b.following.Unlock()
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
