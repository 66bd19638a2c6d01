package bans

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// Max is how many bans are kept in memory, those that have ended and are not forgotten included. If there
// are as many, no one else is banned.
const Max = 100_000

// shownFor is how long a ban that was lifted is stored at least: all instances have seen it by then.
const shownFor = 10 * time.Minute

// Ban keeps a key out until a time.
type Ban struct {
	ratelimit.Key
	Seen   store.Seen // its state in the store; of a ban that waits, the state it replaces; zero: none
	Level  int        // how many bans came before it that were not forgotten
	Since  time.Time
	Until  time.Time
	Forget time.Time // from then on the next ban is a first one
	// Lifted is when an operator ended it; zero: none did.
	Lifted time.Time
}

// Active reports whether the ban is in force.
func (b *Ban) Active(now time.Time) bool { return now.Before(b.Until) }

// Expires is when the ban need not be stored any longer.
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

// next returns the ban by a rule that comes after b, which is zero if there was none.
func (b *Ban) next(now time.Time, k ratelimit.Key, r *ratelimit.BanRule) Ban {
	now = now.Truncate(time.Millisecond) // as it is stored
	n := Ban{Key: k, Seen: b.Seen, Since: now}
	if now.Before(b.Forget) {
		n.Level = b.Level + 1
	}
	n.Until = now.Add(r.Length(n.Level).Truncate(time.Millisecond))
	n.Forget = n.Until.Add(r.Forget.Truncate(time.Millisecond))
	return n
}

// Lift returns the ban as an operator ends it; forget: as if there had been none.
func (b *Ban) Lift(now time.Time, forget bool) Ban {
	n := *b
	now = now.Truncate(time.Millisecond)
	if n.Lifted = now; n.Active(now) {
		n.Until = now
	}
	if forget {
		n.Forget = n.Until
	}
	return n
}

// ErrNotFound is returned if there is no ban of that key.
var ErrNotFound = errors.New("bans: there is no such ban")

// Store keeps the bans: a [Repository].
type Store interface {
	// Ban returns the ban of a key, or ErrNotFound.
	Ban(ctx context.Context, k ratelimit.Key) (Ban, error)
	// PutBan stores a ban in the place of the one in the state b.Seen, and returns its new state. If there
	// is another, it returns [store.ErrConflict] and changes nothing.
	PutBan(ctx context.Context, b Ban) (store.Seen, error)
	// Bans returns all bans that were stored since a time by the clock of the store, in any order, and some
	// that were stored before. The zero time: all.
	Bans(ctx context.Context, since time.Time) ([]Ban, error)
	// Now returns the time by the clock of the store.
	Now(ctx context.Context) (time.Time, error)
}
