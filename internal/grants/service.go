package grants

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/secret"
)

// Clients looks clients up in memory. [clientcfg.Source] is one.
type Clients interface {
	// Client returns the client of that ID; it must not be changed.
	Client(id string) (*clientcfg.Client, bool)
}

// Signer signs and verifies access tokens. [keys.Ring] is one.
type Signer interface {
	Sign(c keys.Claims) (string, error)
	Verify(token string, now time.Time) (keys.Claims, error)
}

// Store is everything that a [Service] keeps.
type Store interface {
	Codes
	RefreshTokens
	Revocations
	Users
	Sessions
}

// Options make a [Service]. Issuer, Clients, Store and Signer are required;
// every other zero value means the default that is named beside it.
type Options struct {
	Issuer    string // iss of access tokens, and their aud if the client has none
	Clients   Clients
	Store     Store
	Signer    Signer
	Passwords *secret.Passwords // secret.NewPasswords(secret.PasswordOptions{})

	Now    func() time.Time // time.Now
	Logger *slog.Logger     // discards

	CodeLifetime         time.Duration // 2m
	AccessTokenLifetime  time.Duration // 1h; keys.Options.TokenLifetime must not be shorter
	RefreshTokenLifetime time.Duration // 30 days, from its own issue on
	SessionLifetime      time.Duration // 12h
}

// Service is the OAuth protocol without HTTP. It is safe for concurrent use.
type Service struct {
	opts Options
}

// ErrSignIn is returned for a wrong name or password; it does not say which.
var ErrSignIn = errors.New("grants: wrong username or password")

// ErrNoSession is returned for a session that does not exist, has expired or
// belongs to a user who is gone: the person has to sign in.
var ErrNoSession = errors.New("grants: no such session")

// New makes a Service; it fails if a required option is missing.
func New(opts Options) (*Service, error) { return &Service{opts: opts}, nil }

// Token answers a token request (RFC 6749 3.2). Errors: *[Error].
func (s *Service) Token(ctx context.Context, req TokenRequest) (TokenResponse, error) {
	return TokenResponse{}, s.unfinished(ctx)
}

// Authorize checks an authorization request and says what to ask the user.
// Errors: *[RedirectError] to tell the client, *[Error] to show the user.
func (s *Service) Authorize(ctx context.Context, req AuthorizeRequest) (*Prompt, error) {
	return nil, s.unfinished(ctx)
}

// Approve issues an authorization code: the user of the session agreed.
func (s *Service) Approve(ctx context.Context, p *Prompt, session Session) (code string, err error) {
	return "", s.unfinished(ctx)
}

// SignIn checks a password and starts a session. The cookie value is shown
// once and stored by its digest only. Errors: [ErrSignIn], *[Error].
func (s *Service) SignIn(ctx context.Context, in SignIn) (cookieValue string, session Session, err error) {
	return "", Session{}, s.unfinished(ctx)
}

// Session returns the session of a cookie. Errors: [ErrNoSession], *[Error].
func (s *Service) Session(ctx context.Context, cookieValue string) (Session, error) {
	return Session{}, s.unfinished(ctx)
}

// SignOut ends the session of a cookie; one that is not there is no error.
func (s *Service) SignOut(ctx context.Context, cookieValue string) error { return s.unfinished(ctx) }

// TokenQuery is a parsed request to the introspection (RFC 7662 2.1) or the
// revocation endpoint (RFC 7009 2.1).
type TokenQuery struct {
	Credentials Credentials
	Remote      netip.Addr
	Token       string
	Hint        string // token_type_hint; only a hint
}

// Introspect says what a token is worth (RFC 7662). Errors: *[Error].
func (s *Service) Introspect(ctx context.Context, q TokenQuery) (Introspection, error) {
	return Introspection{}, s.unfinished(ctx)
}

// Revoke makes a token worthless (RFC 7009); an unknown one is no error.
// Errors: *[Error].
func (s *Service) Revoke(ctx context.Context, q TokenQuery) error { return s.unfinished(ctx) }

func (s *Service) unfinished(context.Context) error {
	return fail(ServerError, "this server is not finished yet")
}
