package grants

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants/issuer"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// issuance is a token request between look and take: the grant as it was found, and what will be
// issued for it.
type issuance struct {
	client     *clientcfg.Client
	credential secret.Digest // secret that authenticated the client; zero for a public client
	grant      clientcfg.Grant
	remote     netip.Addr
	now        time.Time
	auth       Authorization
	scopes     []string    // of the access token; a refresh may narrow them
	claims     keys.Claims // of the access token, once issued
	reuse      *reuse      // nil if the client does not get its last token again
	tried      *tokenSet   // set of a token that a candidate policy admits; nil if there is none

	sent  refreshToken // the refresh token or code that the client presented; zero for other grants
	found *Grant       // its record, checked, not yet claimed unless repeated
	// repeated is set if the refresh token was used before and the newest token of the family is to
	// be issued again.
	repeated bool
	next     *Grant // to be stored; nil if nothing is
	token    string // refresh token to issue; empty for none
}

// take claims the grant and issues the tokens. If another request has claimed it since look, this
// request is a retry or a replay.
func (s *Service) take(ctx context.Context, x *issuance) (TokenResponse, error) {
	access, refresh, err := s.issue(ctx, x)
	if errors.Is(err, ErrClaimed) {
		if err := s.claimedMeanwhile(ctx, x); err != nil {
			return TokenResponse{}, err
		}
		access, refresh, err = s.issue(ctx, x)
	}
	if errors.Is(err, store.ErrNotFound) {
		err = cmp.Or(s.hasData(ctx), err)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return TokenResponse{}, fail(oautherr.InvalidGrant, "The grant is unknown or has expired.")
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
		Store: func(ctx context.Context) error { return s.claim(ctx, x) },
	})
}

// claim claims the code or the refresh token and stores the family with its newest generation, in
// one store operation that succeeds for exactly one request. Access tokens are not stored, so
// client_credentials does not touch the store. A repeated response stores nothing either.
func (s *Service) claim(ctx context.Context, x *issuance) error {
	switch {
	case x.next == nil:
		return nil
	case x.found == nil:
		return s.store.CreateGrant(ctx, *x.next)
	}
	return s.store.Claim(ctx, *x.next)
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
