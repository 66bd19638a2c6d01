package grants

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
)

// GuessLimits bound how many passwords can be tried in a long time. All instances count together,
// through [Options].Counters. A username that no user has is limited like any other.
type GuessLimits struct {
	PerName ratelimit.Limit // of wrong passwords of one username from one address
	// PerUser is of wrong passwords of one username from all addresses, since the last right one.
	// Beyond it the attempts from addresses that are not known have the limit SlowDown. Known are
	// those with a right password in the last 90 days.
	PerUser, SlowDown ratelimit.Limit
}

// NewGuessLimits returns limits of so many wrong passwords a day, and of an attempt in each wait.
func NewGuessLimits(perName, perUser int64, wait time.Duration) GuessLimits {
	const day = 24 * time.Hour
	return GuessLimits{
		PerName:  ratelimit.NewLimit("per-name-and-day", perName, day),
		PerUser:  ratelimit.NewLimit("per-user-and-day", perUser, day),
		SlowDown: ratelimit.NewLimit("slow-down", 1, wait),
	}
}

// The keys of the counters. Their usernames are derived, see guesses.key.
const (
	dayKeys  = ratelimit.Internal + "wrong passwords by address"
	rowKeys  = ratelimit.Internal + "wrong passwords in a row"
	slowKeys = ratelimit.Internal + "attempts slowed down"
)

// guesses counts wrong passwords for a day, by address and username and by username alone.
type guesses struct {
	clock          func() time.Time // of the counts
	now            func() time.Time // of what is stored
	derive         func(purpose, text string) string
	counters       *ratelimit.Counters
	day, row, slow *ratelimit.Effective
	frame          time.Duration // in which all instances together make one attempt that is slowed down
	store          Revocations
}

func newGuesses(o *Options) (*guesses, error) {
	g := &guesses{clock: o.Clock, now: o.Now, derive: o.Deriver.Derive, counters: o.Counters, frame: o.Guesses.SlowDown.Window, store: o.Store}
	if g.counters == nil {
		g.counters = ratelimit.NewCounters(maxMeterKeys)
	}
	var errs [3]error
	g.day, errs[0] = ratelimit.Enforced(o.Guesses.PerName, o.Guesses.PerName)
	g.row, errs[1] = ratelimit.Enforced(o.Guesses.PerUser, o.Guesses.PerUser)
	g.slow, errs[2] = ratelimit.Enforced(o.Guesses.SlowDown, o.Guesses.SlowDown)
	return g, errors.Join(errs[:]...)
}

// key returns a key that does not show its names: people type passwords into the field for the name.
func (g *guesses) key(kind, text string) ratelimit.Key {
	return ratelimit.Key{ClientID: kind, Username: g.derive(kind, text)}
}

// guess is one attempt to sign in.
type guess struct {
	*guesses
	name     string
	place    string        // the source and the name
	from     string        // what the address is known by; after of
	day, row ratelimit.Key // row: after of
	known    bool
	recent   bool // and not to be stored anew yet
	slowing  bool // the attempt was one of those that are slowed down, when that was last asked
}

func (g *guesses) guess(name string, at place) *guess {
	text := at.source() + "\x00" + name
	return &guess{guesses: g, name: name, place: text, day: g.key(dayKeys, text)}
}

// blocked returns the answer to an attempt beyond the day's limit, nil if it may be made now.
func (a *guess) blocked() error {
	d, _ := a.counters.Denies(a.clock(), a.day, a.guesses.day)
	return tooMany(d.RetryAfter, userAttemptsLimit, "Too many failed attempts with this username from this address")
}

// of sets the user of the attempt, the zero user if there is none of that name, and what is known of the name.
func (a *guess) of(u *User, k Known) {
	k = k.of(u)
	var row int64 // the same for users without a right password and for names that no user has
	if !k.RowFrom.IsZero() {
		row = k.RowFrom.UnixMilli()
	}
	a.row = a.key(rowKeys, strconv.FormatInt(row, 10)+"\x00"+a.name)
	a.from = a.addressOf(u)
	at, there := k.Addresses[a.from]
	age := a.now().Sub(at)
	a.known, a.recent = there && age < knownFor, there && age < knownRefresh
}

// addressOf returns what the address is known by. The stamp is part of it, so a
// revocation ends all known addresses, also one that is stored a moment later.
func (a *guess) addressOf(u *User) string {
	return a.derive("address of a user", a.place+"\x00"+u.Stamp.ID+"\x00"+strconv.FormatInt(u.Stamp.Count, 10))
}

// slowed returns the answer to an attempt beyond the slow-down, nil if it may wait for its turn, or has it and may be
// made. It uses up nothing: nothing may come of an attempt that has to wait, or of one that is to be hashed.
func (a *guess) slowed() error {
	if a.slowing = a.slows(); !a.slowing {
		return nil
	}
	d, _ := a.counters.Denies(a.clock(), a.slowKey(), a.slow)
	return tooMany(d.RetryAfter, userAttemptsLimit, tooManyOfName)
}

// made uses up the part of the slow-down of an attempt whose password was hashed. Its error is the answer, whether or
// not the password was right. Several attempts may have been hashed at once, and the counters of several instances
// would all admit one when a frame begins, so the store decides between them. If it cannot, the attempt has used up
// nothing: its answer says nothing about the password.
func (a *guess) made(ctx context.Context) error {
	if !a.slowing {
		return nil
	}
	taken := a.clock()
	if d := a.counters.Take(taken, a.slowKey(), a.slow, 1); d.Rejected() {
		return tooMany(d.RetryAfter, userAttemptsLimit, tooManyOfName)
	}
	begun := a.now().Truncate(a.frame)
	end := begun.Add(a.frame)
	name := "attempt slowed down " + a.slowKey().Username + strconv.FormatInt(begun.UnixMilli(), 10)
	switch err := a.store.RecordOnce(ctx, name, end.Add(skew)); {
	case errors.Is(err, ErrExists):
		return tooMany(end.Sub(a.now()), userAttemptsLimit, tooManyOfName)
	case err != nil:
		a.counters.Refund(a.clock(), taken, a.slowKey(), a.slow, 1)
		return storeFailed("record an attempt to sign in", err)
	}
	return nil
}

const tooManyOfName = "Too many failed attempts with this username"

// slows reports whether the attempt is one of those that are slowed down.
func (a *guess) slows() bool {
	if a.known {
		return false
	}
	_, full := a.counters.Denies(a.clock(), a.row, a.guesses.row)
	return full
}

func (a *guess) slowKey() ratelimit.Key { return a.key(slowKeys, a.name) }

// failed counts a wrong password, and returns its answer if there were too many already.
func (a *guess) failed() error {
	a.counters.Take(a.clock(), a.row, a.guesses.row, 1)
	d := a.counters.Take(a.clock(), a.day, a.guesses.day, 1)
	return tooMany(d.RetryAfter, userAttemptsLimit, "Too many failed attempts with this username from this address")
}

// remember stores that a password was right. The person is signed in even if that fails.
func (s *Service) remember(ctx context.Context, u *User, a *guess) {
	inRow := len(a.counters.Usage(a.clock(), a.row)) > 0
	if !inRow && a.recent {
		return
	}
	err := s.store.ChangeKnown(ctx, u, func(k *Known) {
		if inRow {
			k.EndRow(a.now())
		}
		if !a.recent {
			k.Add(a.from, a.now())
		}
	})
	if err != nil && ctx.Err() == nil {
		s.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "address of a right password not stored", slog.Any("error", err))
	}
}
