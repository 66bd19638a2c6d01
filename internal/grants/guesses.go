package grants

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
)

// GuessLimits bound how many passwords can be tried over a long time. All instances count together,
// through [Options].Counters. A username without a user is limited like any other.
type GuessLimits struct {
	PerName ratelimit.Limit // wrong passwords for one username from one address
	// PerUser limits wrong passwords for one username from all addresses, since the last correct
	// one. Over it, attempts from unknown addresses are limited by SlowDown. An address is known if
	// a correct password came from it in the last 90 days.
	PerUser, SlowDown ratelimit.Limit
}

// NewGuessLimits returns limits of perName and perUser wrong passwords a day, and then one attempt
// in each wait.
func NewGuessLimits(perName, perUser int64, wait time.Duration) GuessLimits {
	const day = 24 * time.Hour
	return GuessLimits{
		PerName:  ratelimit.NewLimit("per-name-and-day", perName, day),
		PerUser:  ratelimit.NewLimit("per-user-and-day", perUser, day),
		SlowDown: ratelimit.NewLimit("slow-down", 1, wait),
	}
}

// The client IDs of the counter keys. The usernames of the keys are derived; see guesses.key.
const (
	dayKeys  = ratelimit.Internal + "wrong passwords by address"
	rowKeys  = ratelimit.Internal + "wrong passwords in a row"
	slowKeys = ratelimit.Internal + "attempts slowed down"
)

// guesses counts wrong passwords for a day, by address and username and by username alone.
type guesses struct {
	clock          func() time.Time // for counts
	now            func() time.Time // for stored times
	derive         func(purpose, text string) string
	counters       *ratelimit.Counters
	day, row, slow *ratelimit.Effective
	frame          time.Duration // period in which all instances together make one slowed-down attempt
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

// key returns a key that hides the name, because people type passwords into the username field.
func (g *guesses) key(kind, text string) ratelimit.Key {
	return ratelimit.Key{ClientID: kind, Username: g.derive(kind, text)}
}

// guess is one attempt to sign in.
type guess struct {
	*guesses
	name     string
	place    string        // source and name
	from     string        // derived form of the address; set by of
	day, row ratelimit.Key // row is set by of
	known    bool
	recent   bool // known, and too recent to be stored again
	slowing  bool // result of the last slowed call: the attempt is subject to the slow-down
}

func (g *guesses) guess(name string, at place) *guess {
	text := at.source() + "\x00" + name
	return &guess{guesses: g, name: name, place: text, day: g.key(dayKeys, text)}
}

// blocked returns the error for an attempt over the day's limit, or nil if it may be made now.
func (a *guess) blocked() error {
	d, _ := a.counters.Denies(a.clock(), a.day, a.guesses.day)
	return tooMany(d.RetryAfter, userAttemptsLimit, "Too many failed attempts with this username from this address")
}

// of sets the user of the attempt and the record of the username. u is the zero User if the
// username has no user.
func (a *guess) of(u *User, k Known) {
	k = k.of(u)
	var row int64 // 0 both for users without a correct password so far and for usernames without a user
	if !k.RowFrom.IsZero() {
		row = k.RowFrom.UnixMilli()
	}
	a.row = a.key(rowKeys, strconv.FormatInt(row, 10)+"\x00"+a.name)
	a.from = a.addressOf(u)
	at, there := k.Addresses[a.from]
	age := a.now().Sub(at)
	a.known, a.recent = there && age < knownFor, there && age < knownRefresh
}

// addressOf returns the derived form of the address. It includes the stamp, so a revocation
// invalidates all known addresses, including one that is stored a moment later.
func (a *guess) addressOf(u *User) string {
	return a.derive("address of a user", a.place+"\x00"+u.Stamp.ID+"\x00"+strconv.FormatInt(u.Stamp.Count, 10))
}

// slowed returns the error for an attempt beyond the slow-down, or nil if the attempt may be queued
// or made now. It consumes nothing, because a queued attempt may never be hashed.
func (a *guess) slowed() error {
	if a.slowing = a.slows(); !a.slowing {
		return nil
	}
	d, _ := a.counters.Denies(a.clock(), a.slowKey(), a.slow)
	return tooMany(d.RetryAfter, userAttemptsLimit, tooManyOfName)
}

// made consumes the slow-down for an attempt after its password was hashed. If it returns an error,
// that is the response, whether or not the password was correct. Several attempts may have been
// hashed at once, and the counters of several instances would each admit one at the start of a
// frame, so the store decides between them. If the store fails, the attempt consumes nothing, and
// the response says nothing about the password.
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

// slows reports whether the attempt is subject to the slow-down.
func (a *guess) slows() bool {
	if a.known {
		return false
	}
	_, full := a.counters.Denies(a.clock(), a.row, a.guesses.row)
	return full
}

func (a *guess) slowKey() ratelimit.Key { return a.key(slowKeys, a.name) }

// failed counts a wrong password, and returns an error if there were already too many.
func (a *guess) failed() error {
	a.counters.Take(a.clock(), a.row, a.guesses.row, 1)
	d := a.counters.Take(a.clock(), a.day, a.guesses.day, 1)
	return tooMany(d.RetryAfter, userAttemptsLimit, "Too many failed attempts with this username from this address")
}

// remember stores that a password was correct. If that fails, the user is signed in anyway.
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
