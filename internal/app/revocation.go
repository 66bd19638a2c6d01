package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/syncer"
)

// revocationMargin is how far a revocation reaches into the future for what carries no stamp, because
// an earlier release has issued it. An instance that has not read its clients since, which takes up to
// [clientsRefreshEvery], may still accept an old secret, and one whose clock is ahead of that of the
// store dates what it issues too late: by the rest of the margin, that is harmless.
const revocationMargin = 10 * time.Second

// storeClock is the clock that all instances share.
type storeClock interface {
	// Now is that of [syncer.Store].
	Now(ctx context.Context) (time.Time, error)
}

// sharedTime returns the time of the database, or of this machine if the store has no other clock.
func sharedTime(ctx context.Context, c storeClock) (time.Time, error) {
	now, err := c.Now(ctx)
	if errors.Is(err, syncer.ErrNoClock) {
		return time.Now(), nil
	}
	return now, err
}

// notBefore returns the time for a revocation now. It is in whole seconds, as the times in tokens are,
// and rounded up, so that nothing outlives the second of the revocation.
func notBefore(now time.Time) time.Time {
	return now.UTC().Add(revocationMargin + time.Second - 1).Truncate(time.Second)
}

// clientStore is what a change of a client needs.
type clientStore interface {
	clientcfg.Store
	clientcfg.Registry
	storeClock
}

// changeClient changes a client and returns it as it was stored. What others change meanwhile is kept:
// then change is called again, with what they have stored. Errors: those of change,
// [clientcfg.ErrNotFound].
func changeClient(ctx context.Context, store clientStore, id string, change func(c *clientcfg.Client, now time.Time) error) (clientcfg.Client, error) {
	now, err := sharedTime(ctx, store)
	for err == nil {
		var c clientcfg.Client
		if c, err = FindClient(ctx, store, id); err != nil {
			return c, err
		}
		if err = change(&c, now); err != nil {
			break
		}
		if err = store.UpdateClient(ctx, c); err == nil {
			return c, nil
		}
		if errors.Is(err, clientcfg.ErrConflict) {
			err = ctx.Err()
		}
	}
	return clientcfg.Client{}, fmt.Errorf("client %q: %w", id, err)
}

// RevokeClient makes everything worthless that was issued to a client until now, and returns the
// client. Its secret stays, and what is issued from now on is good. Instances follow as soon as they have
// refreshed their clients, within two seconds; what one issues that has not is worthless to all others.
// Errors: [clientcfg.ErrNotFound].
func RevokeClient(ctx context.Context, store clientStore, id string) (clientcfg.Client, error) {
	return changeClient(ctx, store, id, func(c *clientcfg.Client, now time.Time) error {
		revoke(c, now)
		return nil
	})
}

// revoke counts the stamp of the client on, and dates the revocation for what carries no stamp. It never
// takes an earlier one back.
func revoke(c *clientcfg.Client, now time.Time) {
	c.Stamp = c.Stamp.Revoked()
	if until := notBefore(now); until.After(c.NotBefore) {
		c.NotBefore = until
	}
}

// ErrPublic is returned when a secret is asked for a client that has none.
var ErrPublic = errors.New("a public client has no secret")

// Rotation is what becomes of a secret that is replaced, and of what was issued under it.
type Rotation struct {
	Revoke  bool          // as [RevokeClient] does
	Overlap time.Duration // the old secret stays valid for so long; 0: it ends at once
}

// MaxOverlap is the longest overlap of two secrets.
const MaxOverlap = 30 * 24 * time.Hour

// validate returns an *[InvalidError] for a rotation that contradicts itself.
func (r Rotation) validate() error {
	switch {
	case r.Overlap < 0 || r.Overlap > MaxOverlap:
		return &InvalidError{fmt.Errorf("overlap: needs to be from 0 to %d days", MaxOverlap/(24*time.Hour))}
	case r.Overlap > 0 && r.Revoke:
		return &InvalidError{errors.New("overlap: the old secret cannot both be revoked and stay valid")}
	}
	return nil
}

// RotateSecret replaces the secret of a confidential client. It returns the client and the new secret,
// which is stored as a digest only. Instances follow as soon as they have refreshed their clients,
// within two seconds. At most two secrets are valid: one that still was from an earlier rotation ends.
// Errors: *[InvalidError], [ErrPublic], [clientcfg.ErrNotFound].
func RotateSecret(ctx context.Context, store clientStore, id string, r Rotation) (c clientcfg.Client, shown string, err error) {
	if err := r.validate(); err != nil {
		return c, "", err
	}
	shown = secret.New()
	c, err = changeClient(ctx, store, id, func(c *clientcfg.Client, now time.Time) error {
		if c.Public {
			return ErrPublic
		}
		former := clientcfg.FormerSecret{Digest: c.SecretDigest, Until: now.UTC().Add(r.Overlap).Truncate(time.Second), Used: c.SecretUsed}
		c.SecretDigest, c.SecretUsed, c.Former = secret.DigestOf(shown), time.Time{}, clientcfg.FormerSecret{}
		if r.Overlap > 0 {
			c.Former = former
		}
		if r.Revoke {
			revoke(c, now)
		}
		return nil
	})
	if err != nil {
		return clientcfg.Client{}, "", err
	}
	return c, shown, nil
}

// userStore is what a change of a user needs.
type userStore interface {
	grants.Users
	grants.UserRegistry
	storeClock
}

// RevokeUser makes everything worthless that came of a user's sign-ins until now: sessions, codes,
// refresh tokens and access tokens, at once on every instance. It returns the time of the revocation.
// Errors: [grants.ErrNotFound].
func RevokeUser(ctx context.Context, store userStore, name string) (time.Time, error) {
	return changeUser(ctx, store, name, grants.UserChange{})
}

// SetPassword replaces the password of a user and revokes the user, as [RevokeUser] does.
// Errors: *[InvalidError], [grants.ErrNotFound].
func SetPassword(ctx context.Context, store userStore, name, password string) (time.Time, error) {
	if err := grants.ValidatePassword(name, password); err != nil {
		return time.Time{}, &InvalidError{err}
	}
	hash, err := hashPassword(ctx, name, password)
	if err != nil {
		return time.Time{}, err
	}
	return changeUser(ctx, store, name, grants.UserChange{PasswordHash: hash})
}

// UnlockUser ends the row of wrong passwords of a user, on every instance with its next attempt, so that
// new addresses are not slowed down. Limits by address stay. Errors: [grants.ErrNotFound].
func UnlockUser(ctx context.Context, store userStore, name string) error {
	now, err := sharedTime(ctx, store)
	var u grants.User
	if err == nil {
		u, err = store.User(ctx, name)
	}
	if err == nil {
		err = store.ChangeUser(ctx, name, grants.UserChange{RowFrom: u.NextRow(now)})
	}
	if err != nil {
		return fmt.Errorf("user %q: %w", name, err)
	}
	return nil
}

// changeUser makes the change and revokes the user, in one step of the store, so that what came of a
// sign-in with the record of before carries a lower count. The user is read for the ID of the stamp
// only: one of an earlier release gets one.
func changeUser(ctx context.Context, store userStore, name string, change grants.UserChange) (time.Time, error) {
	now, err := sharedTime(ctx, store)
	var u grants.User
	if err == nil {
		u, err = store.User(ctx, name)
	}
	if err == nil {
		change.NotBefore, change.Stamp = notBefore(now), secret.NewStamp()
		if u.Stamp.ID != "" {
			change.Stamp.ID = ""
		}
		err = store.ChangeUser(ctx, name, change)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("user %q: %w", name, err)
	}
	return change.NotBefore, nil
}
