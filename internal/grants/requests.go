package grants

import (
	"net/netip"
	"net/url"
	"slices"
	"time"

	"oauth-server/internal/clientcfg"
)

// AuthMethod is how a client authenticated (RFC 7591 section 2 names).
type AuthMethod string

// The client authentication methods that the server accepts.
const (
	AuthNone  AuthMethod = "none"
	AuthBasic AuthMethod = "client_secret_basic"
	AuthPost  AuthMethod = "client_secret_post"
)

// Credentials are what a client presented to prove who it is, already decoded.
type Credentials struct {
	Method   AuthMethod
	ClientID string
	Secret   string
	// RawSecret is the secret as it was before form decoding, if that makes a difference: many clients send it in HTTP
	// Basic without the encoding of RFC 6749 2.3.1. Either of the two proves the client.
	RawSecret string
	// Page is the web page that a browser sent the request for, if it is none of this server.
	Page Page
}

// Page is a web page of another origin. A browser sends requests for every page that its user opens, so they prove
// nothing about the user.
type Page struct {
	Origin   string // RFC 6454; "null" if the browser does not say; empty: there is no such page
	SameSite bool   // of the same registrable domain as this server, as the browser says (Sec-Fetch-Site)
}

// foreign reports whether there is a page, and it is none of the client's: of the origin of a redirect URI.
func (p Page) foreign(client *clientcfg.Client) bool {
	return p.Origin != "" && !slices.ContainsFunc(client.RedirectURIs, func(registered string) bool {
		u, err := url.Parse(registered)
		return err == nil && redirectMatches(u.Scheme+"://"+u.Host, p.Origin)
	})
}

// TokenRequest is a parsed request to the token endpoint. An absent parameter is empty: RFC 6749
// 3.2 treats both alike.
type TokenRequest struct {
	Credentials  Credentials
	Remote       netip.Addr // where it came from, forwarded addresses resolved
	GrantType    string
	Scope        string
	Code         string
	RedirectURI  string
	CodeVerifier string
	RefreshToken string
	Username     string
	Password     string
}

// place is where the request of a client comes from.
func (r *TokenRequest) place(client *clientcfg.Client) place {
	return place{r.Remote, r.Credentials.Page.foreign(client)}
}

// TokenResponse is what a client gets (RFC 6749 5.1).
type TokenResponse struct {
	AccessToken  string
	ExpiresIn    time.Duration
	RefreshToken string // empty if none is issued
	Scopes       []string
	RateLimit    RateLimit
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

// Prompt is a valid authorization request: what the user is asked to agree to.
type Prompt struct {
	Client          *clientcfg.Client
	RedirectURI     string   // registered, safe to redirect to
	RedirectURISent bool     // was in the request, so the token request must repeat it
	Scopes          []string // granted if the user agrees
	State           string
	Challenge       string
	Interaction
}

// RedirectError is a failed authorization request whose client and redirect URI are genuine, so
// that the error is sent to the client by redirect (RFC 6749 4.1.2.1). Every other failure of that
// endpoint is an [Error] shown to the user.
type RedirectError struct {
	RedirectURI string
	State       string
	Err         *Error
}

// Error implements error.
func (e *RedirectError) Error() string { return "redirect to client: " + e.Err.Error() }

// Unwrap returns the OAuth error.
func (e *RedirectError) Unwrap() error { return e.Err }

// SignIn is a name and a password as typed, and the address that they come from.
type SignIn struct {
	Username string
	Password string
	Remote   netip.Addr
}

// Introspection is what a token is worth (RFC 7662 2.2). The other fields are set only if Active.
type Introspection struct {
	Active    bool
	TokenType string // "Bearer", or empty for a refresh token
	ClientID  string
	Username  string
	Scopes    []string
	Subject   string
	Issuer    string
	Audience  []string
	ID        string // jti
	IssuedAt  time.Time
	ExpiresAt time.Time
}
