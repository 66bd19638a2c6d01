package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/oautherr"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// presented is a refresh token from a request, with its family's record.
type presented struct {
	text   string
	token  refreshToken
	family Family
}

// find returns a refresh token with its family. It returns ErrNotFound if this server did not issue
// the token, or the family has expired.
func (s *Service) find(ctx context.Context, text string) (*presented, error) {
	token, ok := s.unseal(text)
	if !ok {
		return nil, ErrNotFound
	}
	family, err := s.store.Family(ctx, token.digest())
	if errors.Is(err, ErrNotFound) {
		err = s.reallyNotFound(ctx)
	}
	return &presented{text: text, token: token, family: family}, err
}

// reallyNotFound returns ErrNotFound, unless the store has lost its data. A client discards a
// refused token, but the token would work again after a restore. It asks the store again after the
// missing record, because an earlier answer may date from before the loss.
func (s *Service) reallyNotFound(ctx context.Context) error {
	// ErrMarkLost means that the data still exist, but the directory is out of date.
	if err := s.opts.Clients.Renew(ctx, 0); err != nil && !errors.Is(err, store.ErrMarkLost) {
		return err
	}
	return ErrNotFound
}

// standing is the state of one generation of a family.
type standing int

const (
	ahead      standing = iota // newer than the stored family, because the store was restored from a backup
	newest                     // the current token
	repeatable                 // the predecessor of the newest token, which was issued within the grace period
	replayed                   // used before
)

// standing returns the standing of a token of that generation. The grace period starts by the clock
// of the instance that issued the newest token, and ends by this instance's clock. If the newest
// token is from the future, its time is trusted up to skew.
func (f *Family) standing(generation uint32, now time.Time, grace time.Duration) standing {
	age := now.Sub(f.IssuedAt)
	switch {
	case generation > f.Generation:
		return ahead
	case generation == f.Generation:
		return newest
	case generation+1 == f.Generation && grace > 0 && -skew < age && age < grace:
		return repeatable
	}
	return replayed
}

func (s *Service) lookRefreshToken(ctx context.Context, x *issuance, req TokenRequest) error {
	if req.RefreshToken == "" {
		return fail(oautherr.InvalidRequest, "The parameter refresh_token is missing.")
	}
	p, err := s.find(ctx, req.RefreshToken)
	switch {
	case errors.Is(err, ErrNotFound):
		return errUnknownToken()
	case err != nil:
		return storeFailed("read refresh token", err)
	case p.family.ClientID != x.client.ID:
		return fail(oautherr.InvalidGrant, "The refresh token was issued to another client.")
	}
	x.refresh = p
	if err := s.judge(ctx, x); err != nil {
		return err
	}
	if err := checkClient(x.client, "refresh token", p.family.ClientStamp); err != nil {
		return err
	}
	if err := s.checkFamily(ctx, "refresh token", p.family.Family); err != nil {
		return err
	}
	if err := s.checkUser(ctx, &p.family.Authorization); err != nil {
		return err
	}
	scopes, bad := refreshScope(x.client, p.family.Scopes, req.Scope)
	if bad != nil {
		return bad
	}
	x.auth, x.scopes = p.family.Authorization, scopes
	return nil
}

func errUnknownToken() *Error {
	return fail(oautherr.InvalidGrant, "The refresh token is not known, or has expired.")
}

// judge returns nil if the presented refresh token may be used, or if its response may be repeated
// because the client may not have received the first one. A repetition writes nothing. If it races
// with the first use of the successor, it returns the state that it read, and the family still has
// one newest token.
func (s *Service) judge(ctx context.Context, x *issuance) error {
	p := x.refresh
	alive := x.now.Before(s.end(&p.family))
	switch p.family.standing(p.token.generation, x.now, s.opts.RefreshGrace) {
	case newest:
		if alive {
			return nil
		}
		return errUnknownToken()
	case repeatable:
		if alive {
			x.repeated = true
			return nil
		}
	case ahead:
		return errUnknownToken()
	case replayed:
	}
	return s.replayed(ctx, p.family.Authorization, p.family.ExpiresAt.Sub(p.family.IssuedAt))
}

// claimedMeanwhile handles a code or refresh token that another request has claimed since look. It
// returns nil if the response of that request may be repeated.
func (s *Service) claimedMeanwhile(ctx context.Context, x *issuance) error {
	if x.refresh == nil {
		return s.replayed(ctx, x.auth, 0)
	}
	p, err := s.find(ctx, x.refresh.text)
	switch {
	case errors.Is(err, ErrNotFound):
		return errUnknownToken()
	case err != nil:
		return storeFailed("read refresh token", err)
	}
	x.refresh = p
	if err := s.judge(ctx, x); err != nil {
		return err
	}
	if !x.repeated {
		return storeFailed("issue tokens", ErrClaimed) // the record that was read does not show the other claim yet
	}
	s.prepareNext(x)
	return s.checkFamily(ctx, "refresh token", x.auth.Family)
}

// prepareNext sets the refresh token to issue. It sets none if the sign-in is too old for another
// one.
func (s *Service) prepareNext(x *issuance) {
	if x.repeated {
		x.token = s.seal(x.refresh.token.next())
		return
	}
	token := refreshToken{secret: x.begins}
	switch {
	case x.refresh != nil:
		token = x.refresh.token
	case x.code == nil:
		token.secret = secret.New()
	}
	token = token.next()
	next := Family{
		Authorization: x.auth, Digest: token.digest(), Generation: token.generation,
		IssuedAt: x.now, ExpiresAt: x.now.Add(s.opts.RefreshTokenLifetime), ClientStamp: x.client.Stamp,
	}
	if x.refresh != nil {
		next.stored = x.refresh.family.stored
	}
	next.ExpiresAt = s.end(&next)
	if x.now.Before(next.ExpiresAt) {
		x.next, x.token = &next, s.seal(token)
	}
}

// end returns when the family's newest refresh token expires: at its stored expiry, or earlier at
// the maximum age, which may have been configured since.
func (s *Service) end(f *Family) time.Time {
	if limit := f.AuthTime.Add(s.opts.RefreshMaxAge); limit.Before(f.ExpiresAt) {
		return limit
	}
	return f.ExpiresAt
}
