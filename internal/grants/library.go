package grants

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	lib "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/manage"

	"oauth-server/internal/clientcfg"
)

// exchange is one request on its way through the library: what was looked at
// before, and what is made of it. It travels in the context, because the
// library's interfaces have no other room for it. The library asks its stores
// for clients, codes and tokens; the answers come from here, so that it sees
// exactly what was checked and reads nothing a second time.
type exchange struct {
	client *clientcfg.Client
	now    time.Time
	auth   Authorization
	scopes []string // of the access token; a refresh may narrow them

	presented string        // the code or refresh token as the client sent it
	code      *Code         // looked at, not yet claimed
	refresh   *RefreshToken // looked at, not yet claimed

	newCode      *Code         // to be stored
	newRefresh   *RefreshToken // to be stored; its value goes to the client
	accessExpiry time.Time
}

type exchangeKey struct{}

func (x *exchange) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// errNoExchange would mean that the library was called around the service.
var errNoExchange = errors.New("grants: no exchange in this context")

func exchangeOf(ctx context.Context) (*exchange, error) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errNoExchange
	}
	return x, nil
}

// library adapts the service to the interfaces of go-oauth2.
type library struct {
	service *Service
	manager *manage.Manager
}

func newLibrary(s *Service) *library {
	l := &library{service: s, manager: manage.NewManager()}
	access, refresh := s.opts.AccessTokenLifetime, s.opts.RefreshTokenLifetime
	user := &manage.Config{AccessTokenExp: access, RefreshTokenExp: refresh, IsGenerateRefresh: true}
	l.manager.SetAuthorizeCodeTokenCfg(user)
	l.manager.SetPasswordTokenCfg(user)
	l.manager.SetClientTokenCfg(&manage.Config{AccessTokenExp: access})
	l.manager.SetRefreshTokenCfg(&manage.RefreshingConfig{
		AccessTokenExp: access, RefreshTokenExp: refresh, IsGenerateRefresh: true,
	})
	l.manager.SetAuthorizeCodeExp(s.opts.CodeLifetime)
	l.manager.SetValidateURIHandler(validateURI)
	l.manager.MapClientStorage(clientStore{})
	l.manager.MapTokenStorage(tokenStore{s.store})
	l.manager.MapAuthorizeGenerate(codeGenerator{})
	l.manager.MapAccessGenerate(tokenGenerator{s})
	return l
}

// generate issues for every grant but refresh_token.
func (l *library) generate(ctx context.Context, x *exchange, grant clientcfg.Grant, req TokenRequest) (oauth2.TokenInfo, error) {
	ti, err := l.manager.GenerateAccessToken(x.in(ctx), oauth2.GrantType(grant), &oauth2.TokenGenerateRequest{
		ClientID: x.client.ID, ClientSecret: req.Credentials.Secret,
		UserID: x.auth.Username, Scope: strings.Join(x.scopes, " "),
		Code: req.Code, RedirectURI: x.redirectURI(req), CodeVerifier: req.CodeVerifier,
	})
	return ti, libraryError(err)
}

// refresh issues for the refresh_token grant.
func (l *library) refresh(ctx context.Context, x *exchange, req TokenRequest) (oauth2.TokenInfo, error) {
	ti, err := l.manager.RefreshAccessToken(x.in(ctx), &oauth2.TokenGenerateRequest{
		ClientID: x.client.ID, ClientSecret: req.Credentials.Secret,
		Refresh: req.RefreshToken, Scope: strings.Join(x.scopes, " "),
	})
	return ti, libraryError(err)
}

// authorize issues an authorization code.
func (l *library) authorize(ctx context.Context, x *exchange, p *Prompt) (string, error) {
	ti, err := l.manager.GenerateAuthToken(x.in(ctx), oauth2.Code, &oauth2.TokenGenerateRequest{
		ClientID: x.client.ID, UserID: x.auth.Username, RedirectURI: p.RedirectURI,
		Scope: strings.Join(x.scopes, " "), CodeChallenge: p.Challenge, CodeChallengeMethod: oauth2.CodeChallengeS256,
	})
	if err != nil {
		return "", libraryError(err)
	}
	return ti.GetCode(), nil
}

// redirectURI is what the library is to check: for a code only.
func (x *exchange) redirectURI(req TokenRequest) string {
	if x.code == nil {
		return ""
	}
	return req.RedirectURI
}

// libraryError turns what came out of the library into an *[Error]. It compares
// with errors.Is and so, unlike the library's own table, never panics on an
// error that cannot be a map key. After our own checks the library should have
// nothing to refuse; where it does, its answer stands.
func libraryError(err error) error {
	var own *Error
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.Is(err, ErrClaimed), errors.Is(err, ErrNotFound):
		return err // The caller knows what was claimed.
	case errors.Is(err, lib.ErrInvalidClient):
		return &Error{Code: InvalidClient, Description: "Client authentication failed.", Cause: err}
	case errors.Is(err, lib.ErrInvalidAuthorizeCode), errors.Is(err, lib.ErrInvalidRefreshToken),
		errors.Is(err, lib.ErrExpiredRefreshToken), errors.Is(err, lib.ErrInvalidRedirectURI),
		errors.Is(err, lib.ErrMissingCodeVerifier), errors.Is(err, lib.ErrInvalidCodeChallenge):
		return &Error{Code: InvalidGrant, Description: "The grant is not valid.", Cause: err}
	}
	return storeFailed("issue tokens", err)
}
