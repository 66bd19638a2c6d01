package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants/issuer"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// issuance is a token request on its way from look to take: what was presented, as it was found,
// and what will be issued for it.
type issuance struct {
	client *clientcfg.Client
	grant  clientcfg.Grant
	now    time.Time
	auth   Authorization
	scopes []string // of the access token; a refresh may narrow them

	code      *Code         // presented and checked, not yet claimed
	refresh   *RefreshToken // presented and checked, not yet claimed unless repeated
	presented string        // the same as the client sent it
	// repeated is set if refresh was claimed before, and its successor, which is stored already, is
	// to be issued again.
	repeated bool
	next     *RefreshToken // to be issued; nil if there will be none
	token    string        // the same as the client gets it
}

// take claims what was presented and issues the tokens. If another request has claimed it since
// look, this one is a repetition or a replay.
func (s *Service) take(ctx context.Context, x *issuance) (TokenResponse, error) {
	access, refresh, err := s.issue(ctx, x)
	if errors.Is(err, ErrClaimed) {
		if err := s.claimedMeanwhile(ctx, x); err != nil {
			return TokenResponse{}, err
		}
		access, refresh, err = s.issue(ctx, x)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return TokenResponse{}, fail(InvalidGrant, "The grant is not known, or has expired.")
	case err != nil:
		return TokenResponse{}, storeFailed("issue tokens", err)
	}
	return TokenResponse{
		AccessToken: access, ExpiresIn: s.opts.AccessTokenLifetime, RefreshToken: refresh, Scopes: x.scopes,
	}, nil
}

func (s *Service) issue(ctx context.Context, x *issuance) (access, refresh string, err error) {
	return s.issuer.Issue(ctx, issuer.Request{
		Claims: s.claims(x), Refresh: x.token,
		Store: func(ctx context.Context, refresh string) error { return s.claim(ctx, x, refresh) },
	})
}

// claim takes the code or the refresh token and stores the new refresh token, in one operation of
// the store of which exactly one can succeed. Access tokens are not stored, so client_credentials
// touches no store; a repeated answer stores nothing either.
func (s *Service) claim(ctx context.Context, x *issuance, refresh string) error {
	if x.repeated {
		return nil
	}
	if x.next != nil {
		x.next.Digest = secret.DigestOf(refresh)
	}
	switch {
	case x.code != nil:
		return s.store.RedeemCode(ctx, x.code.Digest, x.next)
	case x.refresh != nil:
		return s.store.RotateRefreshToken(ctx, x.refresh.Digest, *x.next)
	case x.next != nil:
		return s.store.CreateRefreshToken(ctx, *x.next)
	}
	return nil
}

// claims returns the claims of the access token (RFC 9068 2.2).
func (s *Service) claims(x *issuance) keys.Claims {
	c := keys.Claims{
		Subject: x.auth.Username, Audience: x.client.Audience, ClientID: x.client.ID, Scopes: x.scopes,
		IssuedAt: x.now, ExpiresAt: x.now.Add(s.opts.AccessTokenLifetime), AuthTime: x.auth.AuthTime,
		ID: secret.ID(), Family: x.auth.Family, ClientStamp: x.client.Stamp.Carried(), UserStamp: x.auth.UserStamp,
	}
	if c.Subject == "" {
		c.Subject = x.client.ID // RFC 9068 2.2: no resource owner was involved
	}
	if len(c.Audience) == 0 {
		c.Audience = []string{s.opts.Issuer}
	}
	return c
}
