package grants

import (
	"net/netip"
	"net/url"
	"slices"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/limiter/oautherr"
)

// AuthMethod is how a client authenticates, named as in RFC 7591 section 2.
type AuthMethod string

// The client authentication methods that the server accepts.
const (
	AuthNone  AuthMethod = "none"
	AuthBasic AuthMethod = "client_secret_basic"
	AuthPost  AuthMethod = "client_secret_post"
)

// Credentials are the credentials that a client presented, already decoded.
type Credentials struct {
	Method   AuthMethod
	ClientID string
	Secret   string
	// RawSecret is the secret before form decoding, if decoding changes it. Many clients send it in
	// HTTP Basic without the encoding of RFC 6749 2.3.1. Either form authenticates the client.
	RawSecret string
	// Page is the web page that made the browser send the request, if the page is not one of this
	// server.
	Page Page
}

// Page is a web page of another origin. A browser sends requests for any page that its user opens,
// so they prove nothing about the user.
type Page struct {
	Origin   string // RFC 6454; "null" if the browser does not tell; empty if there is no such page
	SameSite bool   // same registrable domain as this server, according to the browser (Sec-Fetch-Site)
}

// foreign reports whether there is a page that does not belong to the client. A page belongs to the
// client if its origin matches a redirect URI.
func (p Page) foreign(client *clientcfg.Client) bool {
	return p.Origin != "" && !slices.ContainsFunc(client.RedirectURIs, func(registered string) bool {
		u, err := url.Parse(registered)
		return err == nil && redirectMatches(u.Scheme+"://"+u.Host, p.Origin)
	})
}

// TokenRequest is a parsed request to the token endpoint. A missing parameter is empty, because RFC
// 6749 3.2 treats both alike.
type TokenRequest struct {
	Credentials  Credentials
	Remote       netip.Addr // client address, after resolving forwarded addresses
	GrantType    string
	Scope        string
	Code         string
	RedirectURI  string
	CodeVerifier string
	RefreshToken string
	Username     string
	Password     string
}

// place returns the origin of the client's request.
func (r *TokenRequest) place(client *clientcfg.Client) attempts.Place {
	return attempts.Place{Addr: r.Remote, Page: r.Credentials.Page.foreign(client)}
}

// TokenResponse is a successful token response (RFC 6749 5.1).
type TokenResponse struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // empty if none is issued
	Scopes       []string
	RateLimit    oautherr.RateLimit
}

// AuthorizeRequest is a parsed request to the authorization endpoint.
type AuthorizeRequest struct {
	ResponseType        string
	ClientID            string
	RedirectURI         string
	Scope               string
	State               string
	CodeChallenge       string
	CodeChallengeMethod string
	Prompt              string // OpenID Connect Core 1.0 3.1.2.1, like the next two
	MaxAge              string
	LoginHint           string
}

// Prompt is a valid authorization request, ready to be shown to the user.
type Prompt struct {
	Client          *clientcfg.Client
	RedirectURI     string   // registered, safe to redirect to
	RedirectURISent bool     // redirect_uri was in the request, so the token request must repeat it
	Scopes          []string // granted if the user agrees
	State           string
	Challenge       string
	Interaction
}

// RedirectError is a failed authorization request with a genuine client and redirect URI, so the
// error is sent to the client by redirect (RFC 6749 4.1.2.1). Any other failure of that endpoint is
// an [Error] shown to the user.
type RedirectError struct {
	RedirectURI string
	State       string
	Err         *Error
}

// Error implements error.
func (e *RedirectError) Error() string { return "redirect to client: " + e.Err.Error() }

// Unwrap returns the OAuth error.
func (e *RedirectError) Unwrap() error { return e.Err }

// Introspection is the state of a token (RFC 7662 2.2). The other fields are set only if Active. The
// claims of a refresh token are those of the access tokens that it is exchanged for.
type Introspection struct {
	Active    bool
	TokenType string // "Bearer", or empty for a refresh token
	Username  string
	keys.Claims
}
