package clientcfg

import (
	"slices"
	"strings"
	"time"

	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/secret"
	"oauth-server/internal/strict/fielderr"
)

// Grant is an OAuth grant type, as in the grant_type parameter.
type Grant string

// The grant types that a client can be registered for (RFC 6749 section 4).
const (
	AuthorizationCode Grant = "authorization_code"
	ClientCredentials Grant = "client_credentials"
	RefreshToken      Grant = "refresh_token"
	Password          Grant = "password" // RFC 9700 2.4: never a default
)

// Grants lists every grant type that the server supports.
func Grants() []Grant { return slices.Clone(knownGrants) }

var knownGrants = []Grant{AuthorizationCode, ClientCredentials, RefreshToken, Password}

// Client is a registered OAuth client.
type Client struct {
	ID           string        `json:"client_id"`
	Name         string        `json:"client_name,omitempty"` // shown on the consent page
	SecretDigest secret.Digest `json:"-"`                     // zero for a public client
	// SecretUsed is the minute when the secret was last used. Zero means never.
	SecretUsed time.Time `json:"secret_used_at,omitzero"`
	// Former is the secret before the last rotation, if it stays valid for a while.
	Former       FormerSecret `json:"former_secret,omitzero"`
	Public       bool         `json:"public"` // cannot keep a secret: native and browser apps
	Grants       []Grant      `json:"grant_types"`
	RedirectURIs []string     `json:"redirect_uris,omitempty"`
	Scopes       []string     `json:"scopes,omitempty"`   // all scopes that it may request
	Audience     []string     `json:"audience,omitempty"` // aud of its tokens; empty: the server's default
	WithoutPKCE  bool         `json:"without_pkce,omitempty"`
	// ResourceServer allows the client to introspect all access tokens, not only its own and those
	// for its audience.
	ResourceServer bool `json:"resource_server,omitempty"`
	// FirstParty marks a client of the server's own operator. Its users are not asked for consent.
	FirstParty bool       `json:"first_party,omitempty"`
	Labels     labels.Set `json:"labels,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
	// Stamp identifies this registration. A revocation changes its count.
	Stamp   secret.Stamp `json:"-"`
	Version int64        `json:"version"` // +1 with every change, against lost updates
}

// FormerSecret is a replaced secret that stays valid for a while. The zero value means no such
// secret.
type FormerSecret struct {
	Digest secret.Digest `json:"-"`
	Until  time.Time     `json:"valid_until"`
	Used   time.Time     `json:"used_at,omitzero"` // like SecretUsed
}

// MaxIDLength bounds a client_id, because it becomes part of every counter key.
const MaxIDLength = 128

// Clone returns a copy that shares nothing with c, so either may be changed.
func (c *Client) Clone() Client {
	out := *c
	out.Grants, out.RedirectURIs = slices.Clone(c.Grants), slices.Clone(c.RedirectURIs)
	out.Scopes, out.Audience = slices.Clone(c.Scopes), slices.Clone(c.Audience)
	return out
}

// May reports whether the client is registered for the grant.
func (c *Client) May(g Grant) bool { return slices.Contains(c.Grants, g) }

// ActsForUsers reports whether the client can get tokens for users who sign in.
func (c *Client) ActsForUsers() bool { return c.May(AuthorizationCode) || c.May(Password) }

// NeedsPKCE reports whether the client must send a code_challenge. A public client always must (RFC
// 9700 2.1.1), and other clients unless they are exempted.
func (c *Client) NeedsPKCE() bool { return c.Public || !c.WithoutPKCE }

// DisplayName returns the name to show to users: Name, or the ID if Name is empty.
func (c *Client) DisplayName() string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID
}

// Validate returns everything that is wrong with the registration, as [fielderr.Errors] with the names of
// [Metadata].
func (c *Client) Validate() error {
	var errs fielderr.Errors
	validateID(&errs, c.ID)
	if len(c.Grants) == 0 {
		errs.Add("grant_types", "at least one is needed")
	}
	for i, g := range c.Grants {
		if !slices.Contains(knownGrants, g) {
			errs.Add(fielderr.Item("grant_types", i), "unknown grant type %q", string(g))
		}
	}
	if slices.Contains(c.Scopes, ScopeOpenID) {
		errs.Add("scope", "openid is not supported: this server has no OpenID Connect (docs/comparison.md)")
	}
	for _, s := range c.Scopes {
		if !ValidScopeToken(s) {
			errs.Add("scope", "%q is not a scope-token (RFC 6749 3.3)", s)
		}
	}
	for i, u := range c.RedirectURIs {
		if err := redirecturi.Validate(u); err != nil {
			errs.Add(fielderr.Item("redirect_uris", i), "%v", err)
		}
	}
	errs = append(errs, labels.Check(c.Labels.Pairs())...)
	c.validateKind(&errs)
	c.validateTimes(&errs)
	return errs.Err()
}

// validateTimes refuses years that JSON cannot represent.
func (c *Client) validateTimes(errs *fielderr.Errors) {
	for i, t := range [...]time.Time{c.CreatedAt, c.SecretUsed, c.Former.Until, c.Former.Used} {
		if year := t.UTC().Year(); year < 0 || year > 9999 {
			field := [...]string{"created_at", "secret_used_at", "former_secret.valid_until", "former_secret.used_at"}[i]
			errs.Add(field, "the year %d is not from 0 to 9999", year)
		}
	}
}

func (c *Client) validateKind(errs *fielderr.Errors) {
	if c.May(AuthorizationCode) && len(c.RedirectURIs) == 0 {
		errs.Add("redirect_uris", "the authorization_code grant needs at least one")
	}
	if c.Public && c.May(ClientCredentials) {
		errs.Add("grant_types", "a public client cannot use client_credentials (RFC 6749 4.4)")
	}
	if c.Public && !c.SecretDigest.IsZero() {
		errs.Add("token_endpoint_auth_method", "a public client has no secret")
	}
	if !c.Public && c.SecretDigest.IsZero() {
		errs.Add("token_endpoint_auth_method", "a confidential client needs a secret")
	}
	if c.Public && c.ResourceServer {
		errs.Add("resource_server", "a public client cannot introspect tokens (RFC 7662 2.1)")
	}
	if c.FirstParty && !c.May(AuthorizationCode) {
		errs.Add("first_party", "only the authorization_code grant has a consent page to skip")
	}
	if c.FirstParty && c.Public && !slices.ContainsFunc(c.RedirectURIs, func(u string) bool { return strings.HasPrefix(u, "https:") }) {
		errs.Add("first_party", "a public client needs an https redirect URI, because any program can use a loopback address or a private-use scheme (RFC 8252 8.6)")
	}
	if c.Public && c.WithoutPKCE {
		errs.Add("require_pkce", "a public client needs PKCE (RFC 9700 2.1.1)")
	}
}

// ScopeOpenID is the scope that requests OpenID Connect, which this server does not support.
const ScopeOpenID = "openid"

// validateID accepts VSCHAR (RFC 6749 appendix A.1) except the space, because spaces cause mistakes
// in shells and dashboards.
func validateID(errs *fielderr.Errors, id string) {
	if id == "" || len(id) > MaxIDLength {
		errs.Add("client_id", "must have 1 to %d characters", MaxIDLength)
		return
	}
	if id == GlobalCandidate {
		errs.Add("client_id", "%q is the name of the candidate for the default limits", id)
		return
	}
	for _, r := range id {
		if r <= 0x20 || r > 0x7e {
			errs.Add("client_id", "%q is not a visible ASCII character", r)
			return
		}
	}
}

// ValidScopeToken reports whether s is one scope-token (RFC 6749 3.3).
func ValidScopeToken(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if b := s[i]; b <= 0x20 || b == '"' || b == '\\' || b > 0x7e {
			return false
		}
	}
	return true
}
