package httpapi

import (
	"context"

	"oauth-server/internal/accounts"
	"oauth-server/internal/grants"
	"oauth-server/internal/overload"
)

// Service decides about requests. grants.Service implements it. Its errors are a [*grants.Error] or
// wrap one. Any other error is answered as server_error and logged.
type Service interface {
	// Token authenticates the client, checks and claims the grant, and issues the tokens.
	Token(ctx context.Context, r grants.TokenRequest) (grants.TokenResponse, error)
	// Introspect returns the state of a token (RFC 7662).
	Introspect(ctx context.Context, q grants.TokenQuery) (grants.Introspection, error)
	// Revoke revokes a token (RFC 7009). An unknown token is not an error.
	Revoke(ctx context.Context, q grants.TokenQuery) error

	// Authorize checks a request and changes nothing. It returns a [*grants.RedirectError] only if
	// the redirect URI belongs to the client.
	Authorize(ctx context.Context, r grants.AuthorizeRequest) (*grants.Prompt, error)
	// Proceed returns the next step of a request: a page, or the code if no page is needed. The
	// session is nil if the browser has none. If a page is needed but the client does not allow
	// one, it returns a [*grants.RedirectError].
	Proceed(ctx context.Context, p *grants.Prompt, s *accounts.Session) (grants.Next, error)
	// Approve records that the signed-in user agreed, and returns the code. [grants.ErrConsentPage]
	// means that the user must be asked again. [grants.ErrConsentUsed] means that the page has
	// already been used for a code.
	Approve(ctx context.Context, p *grants.Prompt, s accounts.Session, c grants.Consent) (code string, err error)
	// Allowed returns the consents of a user.
	Allowed(ctx context.Context, username string) ([]grants.Allowed, error)
	// Withdraw removes a user's consent for a client. [store.ErrNotFound]: the user has given
	// none.
	Withdraw(ctx context.Context, username, clientID string) error
	// FirstParty reports whether the client exists and needs no consent of its users.
	FirstParty(clientID string) bool

	// SignIn checks a password and returns the value for the cookie. [accounts.ErrSignIn] means a
	// wrong name or password.
	SignIn(ctx context.Context, in accounts.SignIn) (cookieValue string, s accounts.Session, err error)
	// Session returns the session of a cookie. [accounts.ErrNoSession] means that the user must sign
	// in.
	Session(ctx context.Context, cookieValue string) (accounts.Session, error)
	// SignOut ends the session. An unknown session is not an error.
	SignOut(ctx context.Context, cookieValue string) error

	// BeginRequest returns the context for the work on a page, or the error to answer with if the
	// server is overloaded. EndRequest ends the work.
	BeginRequest(ctx context.Context, r *overload.Request) (context.Context, error)
	EndRequest()
}
