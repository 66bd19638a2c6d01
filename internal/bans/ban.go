package bans

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/ratelimit"
)

// Max is how many bans are kept in memory, those that have ended and are not forgotten included. If there
// are as many, no one else is banned.
const Max = 100_000

// shownFor is how long a ban that was lifted is stored at least: all instances have seen it by then.
const shownFor = 10 * time.Minute

// Ban keeps a key out until a time.
type Ban struct {
	ratelimit.Key
	// Version grows with each write, also where the ban was removed meanwhile. 0: it is not stored.
	Version int64
	Level   int // how many bans came before it that were not forgotten
	Since   time.Time
	Until   time.Time
	Forget  time.Time // from then on the next ban is a first one
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
	n := Ban{Key: k, Version: b.Version, Since: now}
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

// Errors of a [Store].
var (
	// ErrNotFound: there is no ban of that key.
	ErrNotFound = errors.New("bans: there is no such ban")
	// ErrChanged: it is not the version that was seen.
	ErrChanged = errors.New("bans: the ban has changed meanwhile")
)

// Store keeps the bans. Implementations MUST be safe for concurrent use, MUST keep all fields of a ban to the
// millisecond, and MUST make what they do durable before they return nil.
type Store interface {
	// Ban returns the ban of a key, or ErrNotFound.
	Ban(ctx context.Context, k ratelimit.Key) (Ban, error)
	// PutBan stores a ban in the place of the one of its key with the version seen; 0: there must be none.
	// Otherwise it returns ErrChanged and changes nothing. The ban may be removed from its Expires on.
	PutBan(ctx context.Context, b Ban, seen int64) error
	// Bans returns all bans that were stored after a mark, in any order, and the number of the next mark. It
	// may return such as were stored before.
	Bans(ctx context.Context, since Mark) (list []Ban, next int64, err error)
}

// Mark is a point in the history of what is stored. The zero Mark is before all.
type Mark struct {
	Number int64
	// Settled is set if Number has been the newest for several seconds: no write from before it can appear
	// any more.
	Settled bool
}
