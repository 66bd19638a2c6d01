package httpapi

import (
	"context"

	"oauth-server/internal/admission"
	"oauth-server/internal/grants"
)

// The interfaces below are what this package needs from the domain, and grants.Service implements
// all of them. Errors are [*grants.Error] or wrap one; anything else is answered as server_error
// and logged.

// Tokens answers the token endpoint.
type Tokens interface {
	// Token authenticates the client, checks and claims the grant and issues.
	Token(ctx context.Context, r grants.TokenRequest) (grants.TokenResponse, error)
}

// Authorizations answers the authorization endpoint, and keeps what users allow clients.
type Authorizations interface {
	// Authorize checks a request and changes nothing. It returns a [*grants.RedirectError] only if
	// the redirect URI is the client's own.
	Authorize(ctx context.Context, r grants.AuthorizeRequest) (*grants.Prompt, error)
	// Proceed returns what a request needs next: a page, or none but its code. The session is nil if the
	// browser has none. It returns a [*grants.RedirectError] where a page is needed that the client does
	// not want to be shown.
	Proceed(ctx context.Context, p *grants.Prompt, s *grants.Session) (grants.Next, error)
	// Approve records that the signed-in user agreed and returns the code. [grants.ErrConsentPage]
	// means that the user has to be asked again, [grants.ErrConsentUsed] that the page gave its code.
	Approve(ctx context.Context, p *grants.Prompt, s grants.Session, c grants.Consent) (code string, err error)
	// Allowed returns what a user allows clients.
	Allowed(ctx context.Context, username string) ([]grants.Allowed, error)
	// Withdraw ends what a user allows a client. [grants.ErrNotFound]: that is nothing.
	Withdraw(ctx context.Context, username, clientID string) error
	// FirstParty reports whether there is such a client and its users are not asked for their consent.
	FirstParty(clientID string) bool
}

// Sessions keeps people signed in.
type Sessions interface {
	// SignIn checks a password and returns the value for the cookie. [grants.ErrSignIn] is a wrong
	// name or password.
	SignIn(ctx context.Context, in grants.SignIn) (cookieValue string, s grants.Session, err error)
	// Session returns the session of a cookie. [grants.ErrNoSession] means that the person has to
	// sign in.
	Session(ctx context.Context, cookieValue string) (grants.Session, error)
	// SignOut ends the session; an unknown one is no error.
	SignOut(ctx context.Context, cookieValue string) error
}

// Inspector answers questions about issued tokens and revokes them.
type Inspector interface {
	// Introspect returns what a token is worth (RFC 7662).
	Introspect(ctx context.Context, q grants.TokenQuery) (grants.Introspection, error)
	// Revoke makes a token worthless (RFC 7009); an unknown one is no error.
	Revoke(ctx context.Context, q grants.TokenQuery) error
}

// Gate refuses requests while the server is overloaded.
type Gate interface {
	// EnterGate returns the context for the work on a request, which LeaveGate ends; or the error to answer.
	EnterGate(ctx context.Context, r *admission.Request) (context.Context, error)
	LeaveGate()
}
