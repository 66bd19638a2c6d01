package bans

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/ratelimit"
)

// Max is the largest number of bans in memory, including bans that have ended but are not
// forgotten. When it is reached, no further keys are banned.
const Max = 100_000

// shownFor is how long a lifted ban is stored at least, so all instances see it.
const shownFor = 10 * time.Minute

// Ban denies all requests of a key until a time.
type Ban struct {
	ratelimit.Key
	Version int64 // counts the bans of the key, and their ends by operators, from 1
	Level   int   // number of earlier bans that were not forgotten
	Since   time.Time
	Until   time.Time
	Forget  time.Time // after this time the next ban counts as the first
	// Lifted is when an operator ended the ban; zero: not lifted.
	Lifted time.Time
}

// same reports whether both are one stored ban.
func (b *Ban) same(o *Ban) bool {
	return b.Version == o.Version && b.Since.Equal(o.Since) && b.Until.Equal(o.Until) && b.Lifted.Equal(o.Lifted)
}

// Active reports whether the ban is in force.
func (b *Ban) Active(now time.Time) bool { return now.Before(b.Until) }

// Expires returns when the ban can be removed from the store.
func (b *Ban) Expires() time.Time {
	at := b.Forget
	if b.Until.After(at) {
		at = b.Until
	}
	if seen := b.Lifted.Add(shownFor); !b.Lifted.IsZero() && seen.After(at) {
		at = seen
	}
	return at
}

// next returns the ban that follows b under a rule. b is zero if there was no ban before.
func (b *Ban) next(now time.Time, k ratelimit.Key, r *ratelimit.BanRule) Ban {
	now = now.Truncate(time.Millisecond) // precision of the store
	n := Ban{Key: k, Version: b.Version + 1, Since: now}
	if now.Before(b.Forget) {
		n.Level = b.Level + 1
	}
	n.Until = now.Add(r.Length(n.Level).Truncate(time.Millisecond))
	n.Forget = n.Until.Add(r.Forget.Truncate(time.Millisecond))
	return n
}

// Lift returns the ban after an operator ended it. With forget, it has no effect on later bans.
func (b *Ban) Lift(now time.Time, forget bool) Ban {
	n := *b
	n.Version++
	now = now.Truncate(time.Millisecond)
	if n.Lifted = now; n.Active(now) {
		n.Until = now
	}
	if forget {
		n.Forget = n.Until
	}
	return n
}

// ErrNotFound means that the key has no ban.
var ErrNotFound = errors.New("bans: ban not found")

// Store stores bans. [Repository] implements it.
type Store interface {
	// Ban returns the ban of a key, or ErrNotFound.
	Ban(ctx context.Context, k ratelimit.Key) (Ban, error)
	// PutBan stores a ban unless the store has the same or a greater version of its key.
	PutBan(ctx context.Context, b Ban) error
	// Bans returns all bans that were stored since a time by the clock of the store, and perhaps
	// some earlier ones, in any order. The zero time selects all bans.
	Bans(ctx context.Context, since time.Time) ([]Ban, error)
	// Now returns the time by the clock of the store.
	Now(ctx context.Context) (time.Time, error)
}
