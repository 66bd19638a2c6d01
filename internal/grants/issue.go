package grants

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants/issuer"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// issuance is a token request on its way from look to take: what was presented, as it was found,
// and what will be issued for it.
type issuance struct {
	client     *clientcfg.Client
	credential secret.Digest // with which the client was authenticated; zero for a public one
	grant      clientcfg.Grant
	remote     netip.Addr
	now        time.Time
	auth       Authorization
	scopes     []string    // of the access token; a refresh may narrow them
	claims     keys.Claims // of the access token, once it is issued
	reuse      *reuse      // nil: the client does not get its last token again
	tried      *tokenSet   // of a token that a candidate admits; nil: none

	code    *Code      // presented and checked, not yet claimed
	begins  string     // code as the client sent it: the secret of the family that begins with it
	refresh *presented // presented and checked, not yet claimed unless repeated
	// repeated is set if the refresh token was used before, and the newest of the family is to be issued
	// again.
	repeated bool
	next     *Family // to be stored; nil if there will be no refresh token, or a repeated one
	token    string  // refresh token, as the client gets it
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
	if errors.Is(err, ErrNotFound) {
		err = s.reallyNotFound(ctx)
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
	x.claims = s.claims(x)
	return s.issuer.Issue(ctx, issuer.Request{
		Claims: x.claims, Refresh: x.token,
		Store: func(ctx context.Context, _ string) error { return s.claim(ctx, x) },
	})
}

// claim takes the code or the refresh token and stores the family with its newest generation, in one
// operation of the store of which exactly one can succeed. Access tokens are not stored, so
// client_credentials touches no store; a repeated answer stores nothing either.
func (s *Service) claim(ctx context.Context, x *issuance) error {
	switch {
	case x.repeated:
		return nil
	case x.code != nil:
		return s.store.RedeemCode(ctx, *x.code, x.next)
	case x.refresh != nil:
		return s.store.RotateFamily(ctx, *x.next)
	case x.next != nil:
		return s.store.CreateFamily(ctx, *x.next)
	}
	return nil
}

// claims returns the claims of the access token (RFC 9068 2.2).
func (s *Service) claims(x *issuance) keys.Claims {
	c := keys.Claims{
		Subject: x.auth.Username, Audience: x.client.Audience, ClientID: x.client.ID, Scopes: x.scopes,
		IssuedAt: x.now, ExpiresAt: x.now.Add(s.opts.AccessTokenLifetime), AuthTime: x.auth.AuthTime,
		ID: secret.ID(), Family: x.auth.Family, ClientStamp: x.client.Stamp, UserStamp: x.auth.UserStamp,
	}
	if c.Subject == "" {
		c.Subject = x.client.ID // RFC 9068 2.2: no resource owner was involved
	}
	if len(c.Audience) == 0 {
		c.Audience = []string{s.opts.Issuer}
	}
	return c
}
