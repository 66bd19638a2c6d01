package grants

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/go-oauth2/oauth2/v4"
	lib "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/models"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// clientStore answers with the client that was authenticated.
type clientStore struct{}

// GetByID implements [oauth2.ClientStore].
func (clientStore) GetByID(ctx context.Context, id string) (oauth2.ClientInfo, error) {
	x, err := exchangeOf(ctx)
	if err != nil {
		return nil, err
	}
	if x.client.ID != id {
		return nil, lib.ErrInvalidClient
	}
	return clientInfo{x.client}, nil
}

// clientInfo shows a client to the library.
type clientInfo struct{ client *clientcfg.Client }

// GetID implements [oauth2.ClientInfo].
func (c clientInfo) GetID() string { return c.client.ID }

// GetSecret returns nothing: there is no secret in clear. See VerifyPassword.
func (clientInfo) GetSecret() string { return "" }

// GetUserID implements [oauth2.ClientInfo]; clients belong to nobody.
func (clientInfo) GetUserID() string { return "" }

// IsPublic implements [oauth2.ClientInfo].
func (c clientInfo) IsPublic() bool { return c.client.Public }

// GetDomain is where the library keeps what validateURI checks against: here
// all registered redirect URIs, separated by a character that none can hold.
func (c clientInfo) GetDomain() string { return strings.Join(c.client.RedirectURIs, "\n") }

// VerifyPassword makes the library compare in constant time.
func (c clientInfo) VerifyPassword(presented string) bool { return proves(c.client, presented) }

// validateURI replaces the library's match by host suffix.
func validateURI(registered, presented string) error {
	if !slices.ContainsFunc(strings.Split(registered, "\n"), func(r string) bool { return redirectMatches(r, presented) }) {
		return lib.ErrInvalidRedirectURI
	}
	return nil
}

// tokenStore answers with what was looked at, and makes of Create the one
// atomic write that claims it and stores its successor. Access tokens are not
// stored, so client_credentials never comes near the store.
type tokenStore struct{ store Store }

// Create implements [oauth2.TokenStore].
func (t tokenStore) Create(ctx context.Context, _ oauth2.TokenInfo) error {
	x, err := exchangeOf(ctx)
	if err != nil {
		return err
	}
	switch {
	case x.newCode != nil:
		return t.store.CreateCode(ctx, *x.newCode)
	case x.code != nil:
		return t.store.RedeemCode(ctx, x.code.Digest, x.newRefresh)
	case x.refresh != nil:
		return t.store.RotateRefreshToken(ctx, x.refresh.Digest, *x.newRefresh)
	case x.newRefresh != nil:
		return t.store.CreateRefreshToken(ctx, *x.newRefresh)
	}
	return nil
}

// GetByCode implements [oauth2.TokenStore]. The library compares expiry with the
// wall clock; it was judged already, with the clock that was injected, so what
// the library sees never expires.
func (tokenStore) GetByCode(ctx context.Context, code string) (oauth2.TokenInfo, error) {
	x, err := exchangeOf(ctx)
	if err != nil || x.code == nil || x.presented != code {
		return nil, err
	}
	return &models.Token{
		ClientID: x.code.ClientID, UserID: x.code.Username, RedirectURI: x.code.RedirectURI,
		Scope: strings.Join(x.code.Scopes, " "), Code: x.presented,
		CodeChallenge: x.code.Challenge, CodeChallengeMethod: string(oauth2.CodeChallengeS256),
		CodeCreateAt: x.code.IssuedAt, CodeExpiresIn: math.MaxInt64,
	}, nil
}

// GetByRefresh implements [oauth2.TokenStore], as GetByCode does.
func (tokenStore) GetByRefresh(ctx context.Context, refresh string) (oauth2.TokenInfo, error) {
	x, err := exchangeOf(ctx)
	if err != nil || x.refresh == nil || x.presented != refresh {
		return nil, err
	}
	return &models.Token{
		ClientID: x.refresh.ClientID, UserID: x.refresh.Username, Scope: strings.Join(x.refresh.Scopes, " "),
		Refresh: x.presented, RefreshCreateAt: x.refresh.IssuedAt, RefreshExpiresIn: 0,
	}, nil
}

// GetByAccess implements [oauth2.TokenStore].
func (tokenStore) GetByAccess(context.Context, string) (oauth2.TokenInfo, error) {
	return nil, lib.ErrInvalidAccessToken // An access token is checked by its signature.
}

// RemoveByCode does nothing: the library removes a code before it has checked
// it. Here it is claimed in Create, after everything was checked.
func (tokenStore) RemoveByCode(context.Context, string) error { return nil }

// RemoveByAccess does nothing: access tokens are not stored.
func (tokenStore) RemoveByAccess(context.Context, string) error { return nil }

// RemoveByRefresh does nothing: Create has claimed the token already.
func (tokenStore) RemoveByRefresh(context.Context, string) error { return nil }

// codeGenerator makes authorization codes of 256 bits.
type codeGenerator struct{}

// Token implements [oauth2.AuthorizeGenerate].
func (codeGenerator) Token(ctx context.Context, _ *oauth2.GenerateBasic) (string, error) {
	x, err := exchangeOf(ctx)
	if err != nil {
		return "", err
	}
	code := secret.New()
	x.newCode.Digest = secret.DigestOf(code)
	return code, nil
}

// tokenGenerator makes access tokens (RFC 9068) and refresh tokens of 256 bits.
type tokenGenerator struct{ s *Service }

// Token implements [oauth2.AccessGenerate].
func (g tokenGenerator) Token(ctx context.Context, _ *oauth2.GenerateBasic, _ bool) (access, refresh string, err error) {
	x, err := exchangeOf(ctx)
	if err != nil {
		return "", "", err
	}
	access, err = g.s.opts.Signer.Sign(g.claims(x))
	if err != nil {
		return "", "", err
	}
	if x.newRefresh != nil {
		refresh = secret.New()
		x.newRefresh.Digest = secret.DigestOf(refresh)
	}
	return access, refresh, nil
}

func (g tokenGenerator) claims(x *exchange) keys.Claims {
	c := keys.Claims{
		Subject: x.auth.Username, Audience: x.client.Audience, ClientID: x.client.ID, Scopes: x.scopes,
		IssuedAt: x.now, ExpiresAt: x.accessExpiry, AuthTime: x.auth.AuthTime, ID: secret.ID(), Family: x.auth.Family,
	}
	if c.Subject == "" {
		c.Subject = x.client.ID // RFC 9068 2.2: no resource owner was involved
	}
	if len(c.Audience) == 0 {
		c.Audience = []string{g.s.opts.Issuer}
	}
	return c
}
