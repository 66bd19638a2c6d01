package grants

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
)

// skew is how far the clocks of two instances may differ.
const skew = accounts.ClockSkew

// Names for stored revocations.
func familyName(family string) string { return "family:" + family }
func tokenName(jti string) string     { return "jti:" + jti }

// replayed handles a grant that was already claimed, and revokes the family: either this request or
// the earlier one came from a thief (RFC 6749 4.1.2, RFC 9700 4.14.2). lifetime is the lifetime of
// the refresh token, or 0 to use the current setting. Repeated replays are revoked once and logged
// once a minute.
func (s *Service) replayed(ctx context.Context, auth Authorization, lifetime time.Duration) error {
	// A thief must not be able to prevent the revocation by disconnecting.
	if err := s.revokeFamily(context.WithoutCancel(ctx), &auth, lifetime); err != nil {
		return err
	}
	if s.replayLines.Take(s.opts.Clock(), ratelimit.Key{ClientID: auth.Family}) == 0 {
		s.opts.Logger.WarnContext(ctx, "grant presented twice; token family revoked",
			slog.String("client_id", auth.ClientID), slog.String("family", auth.Family))
	}
	return fail(oautherr.InvalidGrant, "This was already used. All tokens issued from it are revoked.")
}

// revokeFamily revokes every token of the family, including tokens that a running request has yet
// to store. lifetime is the lifetime of a known refresh token of the family, which may have been
// issued under a longer setting than the current one. Other tokens may have longer lifetimes too,
// but the maximum age bounds them all.
func (s *Service) revokeFamily(ctx context.Context, auth *Authorization, lifetime time.Duration) error {
	last := later(s.opts.Now().Add(max(s.opts.RefreshTokenLifetime, lifetime)), auth.AuthTime.Add(s.opts.RefreshMaxAge))
	return s.revokeOnce(ctx, familyName(auth.Family), last.Add(s.opts.AccessTokenLifetime+skew))
}

// revokeOnce records a revocation unless it is already recorded. Reading is cheaper than writing,
// and nothing limits how often a client asks. Keeping the first time is enough, because a revoked
// token has no successors.
func (s *Service) revokeOnce(ctx context.Context, name string, until time.Time) error {
	revoked, err := s.store.Revoked(ctx, name)
	switch {
	case err != nil:
		return storeFailed("read revocations", err)
	case revoked:
		return nil
	}
	if err := s.store.Revoke(ctx, name, until); err != nil {
		return storeFailed("revoke", err)
	}
	return nil
}

// Revoke revokes a token (RFC 7009). A refresh token is revoked with its whole family, access
// tokens included. An access token is revoked alone. An unknown token is not an error. A token of
// another client is invalid_grant. Errors: *[Error], *[oautherr.LimitedError].
func (s *Service) Revoke(ctx context.Context, q TokenQuery) error {
	client, _, err := s.authenticate(q.Credentials, q.Remote)
	if err != nil {
		return err
	}
	if q.Token == "" {
		return fail(oautherr.InvalidRequest, "The parameter token is missing.")
	}
	ctx, err = s.enter(ctx, client, overload.Revocation, q.Remote)
	if err != nil {
		return err
	}
	defer s.EndRequest()
	if err := s.meteredQuery(s.revocations, client, &q); err != nil {
		return err
	}
	if looksSigned(q.Token) {
		return s.revokeAccessToken(ctx, client.ID, q.Token)
	}
	return s.revokeRefreshToken(ctx, client.ID, q.Token)
}

func (s *Service) revokeAccessToken(ctx context.Context, clientID, token string) error {
	claims, err := s.opts.Signer.Verify(token, s.opts.Now())
	if err != nil {
		return nil //nolint:nilerr // RFC 7009 2.2: an invalid token needs no revocation
	}
	if claims.ClientID != clientID {
		return fail(oautherr.InvalidGrant, "The token was issued to another client.")
	}
	err = s.revokeOnce(ctx, tokenName(claims.ID), claims.ExpiresAt.Add(skew))
	if err == nil {
		s.last.revoked(clientID, claims.ID)
	}
	return err
}

func (s *Service) revokeRefreshToken(ctx context.Context, clientID, token string) error {
	_, g, err := s.findToken(ctx, token)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return storeFailed("read refresh token", err)
	case g.ClientID != clientID:
		return fail(oautherr.InvalidGrant, "The token was issued to another client.")
	}
	return s.revokeFamily(ctx, &g.Authorization, g.ExpiresAt.Sub(g.IssuedAt))
}

// looksSigned reports whether a token is an access token. Its shape is more reliable than a hint: a
// refresh token is base64url, which has no dot.
func looksSigned(token string) bool { return strings.Contains(token, ".") }
