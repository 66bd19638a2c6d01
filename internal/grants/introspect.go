package grants

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// TokenQuery is a parsed request to the introspection (RFC 7662 2.1) or the revocation endpoint
// (RFC 7009 2.1).
type TokenQuery struct {
	Credentials Credentials
	Remote      netip.Addr
	Token       string
	Hint        string // token_type_hint; unused, since the shape of a token shows its type
}

// Introspect returns what a token is worth (RFC 7662). A confidential client may ask about any
// access token, as resource servers do; a public client may ask about its own. Refresh tokens are
// shown to their own client only. Every other token is reported as not active. Errors: *[Error],
// *[LimitedError].
func (s *Service) Introspect(ctx context.Context, q TokenQuery) (Introspection, error) {
	client, err := s.authenticate(q.Credentials, q.Remote)
	if err != nil {
		return Introspection{}, err
	}
	if q.Token == "" {
		return Introspection{}, fail(InvalidRequest, "The parameter token is missing.")
	}
	if looksSigned(q.Token) {
		return s.introspectAccessToken(ctx, client, q.Token)
	}
	return s.introspectRefreshToken(ctx, client, q.Token)
}

func (s *Service) introspectAccessToken(ctx context.Context, asking *clientcfg.Client, token string) (Introspection, error) {
	c, err := s.opts.Signer.Verify(token, s.opts.Now())
	if err != nil || asking.Public && c.ClientID != asking.ID {
		return Introspection{}, nil //nolint:nilerr // RFC 7662 2.2: the answer does not show why it is not active
	}
	return s.introspectClaims(ctx, c)
}

// introspectClaims returns what a token is worth whose signature and time are good.
func (s *Service) introspectClaims(ctx context.Context, c keys.Claims) (Introspection, error) {
	names := []string{tokenName(c.ID)}
	if c.Family != "" {
		names = append(names, familyName(c.Family))
	}
	username := ""
	if c.Family != "" {
		username = c.Subject
	}
	alive, err := s.alive(ctx, c.ClientID, c.IssuedAt, username, c.AuthTime, names...)
	if !alive || err != nil {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, TokenType: "Bearer", ClientID: c.ClientID, Username: username, Scopes: c.Scopes,
		Subject: c.Subject, Issuer: c.Issuer, Audience: c.Audience, ID: c.ID, IssuedAt: c.IssuedAt, ExpiresAt: c.ExpiresAt,
	}, nil
}

func (s *Service) introspectRefreshToken(ctx context.Context, asking *clientcfg.Client, token string) (Introspection, error) {
	t, err := s.store.RefreshToken(ctx, secret.DigestOf(token))
	switch {
	case errors.Is(err, ErrNotFound):
		return Introspection{}, nil
	case err != nil:
		return Introspection{}, storeFailed("read refresh token", err)
	case t.ClientID != asking.ID || t.Claimed || !s.opts.Now().Before(t.ExpiresAt):
		return Introspection{}, nil
	}
	alive, err := s.alive(ctx, t.ClientID, t.IssuedAt, t.Username, t.AuthTime, familyName(t.Family))
	if !alive || err != nil {
		return Introspection{}, err
	}
	return Introspection{
		Active: true, ClientID: t.ClientID, Username: t.Username, Subject: t.Username,
		Scopes: t.Scopes, Issuer: s.opts.Issuer, IssuedAt: t.IssuedAt, ExpiresAt: t.ExpiresAt,
	}, nil
}

// alive reports whether the client and the user of a token still exist and neither they nor the names
// were revoked.
func (s *Service) alive(ctx context.Context, clientID string, issued time.Time, username string, authTime time.Time, names ...string) (bool, error) {
	client, ok := s.opts.Clients.Client(clientID)
	if !ok || !outlives(client, issued) {
		return false, nil
	}
	revoked, err := s.store.Revoked(ctx, names...)
	if err != nil {
		return false, storeFailed("read revocations", err)
	}
	if revoked || username == "" {
		return !revoked, nil
	}
	return s.userSince(ctx, username, authTime)
}
