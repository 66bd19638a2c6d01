package grants

import (
	"cmp"
	"context"
	"errors"

	"oauth-server/internal/accounts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// SignIn checks a password and starts a session. It returns the cookie value. Errors:
// [accounts.ErrSignIn], *[Error], *[oautherr.LimitedError].
func (s *Service) SignIn(ctx context.Context, in accounts.SignIn) (cookieValue string, session accounts.Session, err error) {
	ctx, err = s.BeginRequest(ctx, &overload.Request{Class: overload.SignIn})
	if err != nil {
		return "", session, err
	}
	defer s.EndRequest()
	cookieValue, session, err = s.accounts.SignIn(ctx, in)
	return cookieValue, session, s.notSignedIn(ctx, err)
}

// notSignedIn returns the error for an attempt that failed.
func (s *Service) notSignedIn(ctx context.Context, err error) error {
	var limited *oautherr.LimitedError
	var busy *secret.BusyError
	switch {
	case err == nil || errors.Is(err, accounts.ErrSignIn):
		return err
	case errors.As(err, &limited):
		return limited
	case errors.As(err, &busy) && busy.Starved:
		return Overloaded(s.opts.Shedder.Starved(ctx))
	case errors.As(err, &busy):
		return tooBusy(busy)
	}
	return unavailable(err)
}

// Session returns the session for a cookie value. Errors: [accounts.ErrNoSession], *[Error].
func (s *Service) Session(ctx context.Context, cookieValue string) (accounts.Session, error) {
	session, err := s.accounts.Session(ctx, cookieValue)
	if errors.Is(err, store.ErrNotFound) {
		err = cmp.Or(s.hasData(ctx), accounts.ErrNoSession)
	}
	if err != nil && !errors.Is(err, accounts.ErrNoSession) {
		err = unavailable(err)
	}
	return session, err
}

// SignOut ends the session of a cookie value. It returns nil if there is no such session. Errors:
// *[Error].
func (s *Service) SignOut(ctx context.Context, cookieValue string) error {
	if err := s.accounts.SignOut(ctx, cookieValue); err != nil {
		return storeFailed("delete session", err)
	}
	return nil
}

// signedIn reports whether the user exists, is the same user who signed in (not a later one with
// the same name), and has not been revoked since. It reads the store each time, so a revocation
// takes effect at once on every instance.
func (s *Service) signedIn(ctx context.Context, a *Authorization) (bool, error) {
	user, err := s.opts.Users.User(ctx, a.Username)
	if errors.Is(err, store.ErrNotFound) {
		if err = s.hasData(ctx); err == nil {
			return false, nil
		}
	}
	if err != nil {
		return false, storeFailed("read user", err)
	}
	return user.Stamp.Accepts(a.UserStamp), nil
}

// checkUser refuses a grant if its user no longer exists or was revoked.
func (s *Service) checkUser(ctx context.Context, a *Authorization) error {
	ok, err := s.signedIn(ctx, a)
	if err == nil && !ok {
		err = fail(oautherr.InvalidGrant, "The user no longer exists, or must sign in again.")
	}
	return err
}

// hasData returns an error if the store has lost its data, or if that is unknown. A client discards a
// refused token, but the token would work again after a restore. So a record counts as missing only
// if the store still has its data afterwards.
func (s *Service) hasData(ctx context.Context) error {
	// ErrMarkLost means that the data still exist, but the directory is out of date.
	if err := s.opts.Clients.Renew(ctx, 0); err != nil && !errors.Is(err, store.ErrMarkLost) {
		return err
	}
	return nil
}
