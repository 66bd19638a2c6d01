package accounts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
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

// slowWait is the time between attempts that are slowed down.
const slowWait = 30 * time.Second

// NewGuessLimits returns limits of perName and perUser wrong passwords a day, and then one attempt
// per 30 seconds.
func NewGuessLimits(perName, perUser int64) GuessLimits {
	const day = 24 * time.Hour
	return GuessLimits{
		PerName:  ratelimit.NewLimit("per-name-and-day", perName, day),
		PerUser:  ratelimit.NewLimit("per-user-and-day", perUser, day),
		SlowDown: ratelimit.NewLimit("slow-down", 1, slowWait),
	}
}

// The client IDs of the counter keys. The usernames of the keys are derived; see guessKey.
const (
	dayKeys  = ratelimit.Internal + "wrong passwords by address"
	rowKeys  = ratelimit.Internal + "wrong passwords in a row"
	slowKeys = ratelimit.Internal + "attempts slowed down"
)

// guessKey returns a key that hides the name, because people type passwords into the username field.
func (s *Service) guessKey(kind, text string) ratelimit.Key {
	return ratelimit.Key{ClientID: kind, Username: s.Deriver.Derive(kind, text)}
}

// guess is one attempt to sign in.
type guess struct {
	*Service
	name    string
	place   string        // source and name
	from    string        // derived form of the address; set by of
	dayKey  ratelimit.Key // all wrong passwords from the place
	rowKey  ratelimit.Key // set by of
	slowKey ratelimit.Key
	known   bool
	recent  bool // known, and too recent to be stored again
	slowing bool // result of the last slowed call: the attempt is subject to the slow-down
}

func (s *Service) guess(name string, at attempts.Place) *guess {
	place := at.Source() + "\x00" + name
	return &guess{Service: s, name: name, place: place, dayKey: s.guessKey(dayKeys, place), slowKey: s.guessKey(slowKeys, name)}
}

func tooManyGuesses(wait time.Duration, from string) error {
	return attempts.TooMany(wait, "failed_attempts.users", "Too many failed attempts with this username"+from)
}

// blocked returns the error for an attempt over the day's limit, or nil if it may be made now.
func (a *guess) blocked() error {
	d, _ := a.Counters.Denies(a.Clock(), a.dayKey, a.day)
	return tooManyGuesses(d.RetryAfter, " from this address")
}

// of sets the user of the attempt and the record of the username. u is the zero User if the
// username has no user.
func (a *guess) of(u *User, k Known) {
	k = k.of(u)
	var row int64 // 0 both for users without a correct password so far and for usernames without a user
	if !k.RowFrom.IsZero() {
		row = k.RowFrom.UnixMilli()
	}
	a.rowKey = a.guessKey(rowKeys, strconv.FormatInt(row, 10)+"\x00"+a.name)
	// The stamp is included, so a revocation invalidates all known addresses, even one that is stored
	// a moment later.
	a.from = a.Deriver.Derive("address of a user", a.place+"\x00"+u.Stamp.ID+"\x00"+strconv.FormatInt(u.Stamp.Count, 10))
	at, there := k.Addresses[a.from]
	age := a.Now().Sub(at)
	a.known, a.recent = there && age < knownFor, there && age < knownRefresh
}

// slowed returns the error for an attempt beyond the slow-down, or nil if the attempt may be queued
// or made now. It consumes nothing, because a queued attempt may never be hashed.
func (a *guess) slowed() error {
	a.slowing = false
	if !a.known {
		_, a.slowing = a.Counters.Denies(a.Clock(), a.rowKey, a.row)
	}
	if !a.slowing {
		return nil
	}
	d, _ := a.Counters.Denies(a.Clock(), a.slowKey, a.slow)
	return tooManyGuesses(d.RetryAfter, "")
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
	taken := a.Clock()
	if d := a.Counters.Take(taken, a.slowKey, a.slow, 1); d.Rejected() {
		return tooManyGuesses(d.RetryAfter, "")
	}
	frame := a.Guesses.SlowDown.Window // in which all instances together make one attempt
	begun := a.Now().Truncate(frame)
	end := begun.Add(frame)
	name := "attempt slowed down " + a.slowKey.Username + strconv.FormatInt(begun.UnixMilli(), 10)
	switch err := a.Records.RecordOnce(ctx, name, end.Add(ClockSkew)); {
	case errors.Is(err, store.ErrConflict):
		return tooManyGuesses(end.Sub(a.Now()), "")
	case err != nil:
		a.Counters.Refund(a.Clock(), taken, a.slowKey, a.slow, 1)
		return fmt.Errorf("record an attempt to sign in: %w", err)
	}
	return nil
}

// failed counts a wrong password, and returns an error if there were already too many.
func (a *guess) failed() error {
	a.Counters.Take(a.Clock(), a.rowKey, a.row, 1)
	d := a.Counters.Take(a.Clock(), a.dayKey, a.day, 1)
	return tooManyGuesses(d.RetryAfter, " from this address")
}

// succeeded stores that a password was correct. If that fails, the user is signed in anyway.
func (a *guess) succeeded(ctx context.Context, u *User) {
	inRow := len(a.Counters.Usage(a.Clock(), a.rowKey)) > 0
	if !inRow && a.recent {
		return
	}
	err := a.Records.ChangeKnown(ctx, u, func(k *Known) {
		if inRow {
			k.EndRow(a.Now())
		}
		if !a.recent {
			k.Add(a.from, a.Now())
		}
	})
	if err != nil && ctx.Err() == nil {
		a.Logger.LogAttrs(ctx, slog.LevelWarn, "store address of a sign-in failed", slog.Any("error", err))
	}
}
