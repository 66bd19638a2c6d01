package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/secret"
)

// successorOf is the purpose for which the successor of a refresh token is derived from it.
const successorOf = "refresh token successor"

// successor returns the refresh token that replaces the presented one. With a grace period it is
// derived: a client that repeats a request whose answer was lost gets the same one, although only its
// digest is stored, and a family never has two branches. Without a grace period it is random.
func (s *Service) successor(presented string) string {
	if s.opts.RefreshGrace == 0 {
		return secret.New()
	}
	return s.opts.Deriver.Derive(successorOf, presented)
}

// prepareNext sets the refresh token that will be issued. There is none if the sign-in is too old for
// one.
func (s *Service) prepareNext(x *issuance) {
	next := RefreshToken{
		Authorization: x.auth, IssuedAt: x.now, ExpiresAt: x.now.Add(s.opts.RefreshTokenLifetime),
		ClientStamp: x.client.Stamp.Carried(),
	}
	next.ExpiresAt = s.end(&next)
	if !x.now.Before(next.ExpiresAt) {
		return
	}
	x.next, x.token = &next, secret.New()
	if x.refresh != nil {
		x.token = s.successor(x.presented)
	}
}

// end returns when the refresh token expires: as it is stored, and not later than the maximum age,
// which may have been set since.
func (s *Service) end(t *RefreshToken) time.Time {
	if limit := t.AuthTime.Add(s.opts.RefreshMaxAge); limit.Before(t.ExpiresAt) {
		return limit
	}
	return t.ExpiresAt
}

// repeat returns nil if a refresh token that was claimed before may be answered with its successor
// again: the client may not have received the first answer. Otherwise it is a replay. Nothing is
// written in the first case, so a request that races with the first use of the successor gets what
// was true when it was read, and the family has one newest token all the same.
func (s *Service) repeat(ctx context.Context, x *issuance) error {
	if s.opts.RefreshGrace > 0 {
		next, err := s.store.RefreshToken(ctx, secret.DigestOf(s.successor(x.presented)))
		switch {
		case err == nil && s.repeatable(x.now, x.refresh, &next):
			x.repeated = true
			return nil
		case err != nil && !errors.Is(err, ErrNotFound): // an instance without a grace period has no such successor
			return storeFailed("read refresh token", err)
		}
	}
	return s.replayed(ctx, x.refresh.Authorization, x.refresh.ExpiresAt.Sub(x.refresh.IssuedAt))
}

// repeatable reports whether next, the successor of a claimed token, may be issued again. The grace
// period begins with the time of the instance that issued next, and ends with the time of this one. A
// successor from the future is believed as far as clocks may be apart.
func (s *Service) repeatable(now time.Time, claimed, next *RefreshToken) bool {
	age := now.Sub(next.IssuedAt)
	return next.Family == claimed.Family && next.ClientID == claimed.ClientID && !next.Claimed &&
		-skew < age && age < s.opts.RefreshGrace && now.Before(s.end(next))
}

// claimedMeanwhile decides about a code or a refresh token that another request has claimed since
// look. It returns nil if the answer of that request may be repeated.
func (s *Service) claimedMeanwhile(ctx context.Context, x *issuance) error {
	if x.refresh == nil {
		return s.replayed(ctx, x.auth, 0)
	}
	if err := s.repeat(ctx, x); err != nil {
		return err
	}
	return s.checkFamily(ctx, x.auth.Family)
}
