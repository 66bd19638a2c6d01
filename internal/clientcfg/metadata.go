package clientcfg

import (
	"slices"
	"strings"

	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/strict/fielderr"
)

// Values of token_endpoint_auth_method. A confidential client may send its secret in either way.
const (
	AuthNone  = "none"
	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
)

// Metadata is a client as operators read and write it, with the names of RFC 7591 section 2.
// Audience, RequirePKCE, ResourceServer, FirstParty and Labels are extensions.
type Metadata struct {
	ClientID string `json:"client_id" schema:"required"`
	Name     string `json:"client_name,omitempty"`
	// none: a public client; it cannot change between none and the others
	AuthMethod     string     `json:"token_endpoint_auth_method" schema:"enum=none|client_secret_basic|client_secret_post"`
	Grants         []Grant    `json:"grant_types"`
	ResponseTypes  []string   `json:"response_types"` // code, if the client may use authorization_code
	RedirectURIs   []string   `json:"redirect_uris"`
	Scope          string     `json:"scope,omitempty"` // all scopes that it may request, separated by spaces
	Audience       []string   `json:"audience"`        // aud of its tokens; empty: the issuer
	RequirePKCE    bool       `json:"require_pkce"`
	ResourceServer bool       `json:"resource_server"` // it may introspect all access tokens
	FirstParty     bool       `json:"first_party"`     // its users are not asked for their consent
	Labels         labels.Set `json:"labels,omitempty"`
}

// Metadata returns the client as operators see it, without secrets.
func (c *Client) Metadata() Metadata {
	m := Metadata{
		ClientID: c.ID, Name: c.Name, AuthMethod: AuthBasic, Grants: append([]Grant{}, c.Grants...), ResponseTypes: []string{},
		RedirectURIs: append([]string{}, c.RedirectURIs...), Scope: strings.Join(c.Scopes, " "),
		Audience: append([]string{}, c.Audience...), RequirePKCE: !c.WithoutPKCE, ResourceServer: c.ResourceServer, FirstParty: c.FirstParty,
		Labels: c.Labels,
	}
	if c.Public {
		m.AuthMethod = AuthNone
	}
	if c.May(AuthorizationCode) {
		m.ResponseTypes = append(m.ResponseTypes, "code")
	}
	return m
}

// Apply replaces all metadata of the client (RFC 7592 section 2.2). Its secrets, stamp and times
// stay. Without grants the client gets the [UsualGrants]. Apply does not make the checks of
// [Client.Validate].
func (m *Metadata) Apply(c *Client) (errs fielderr.Errors) {
	methods := []string{AuthNone, AuthBasic, AuthPost}
	if m.AuthMethod != "" && !slices.Contains(methods, m.AuthMethod) {
		errs.Add("token_endpoint_auth_method", "%q is not one of %q, %q, %q", m.AuthMethod, methods[0], methods[1], methods[2])
	}
	for i, r := range m.ResponseTypes {
		if r != "code" {
			errs.Add(fielderr.Item("response_types", i), "%q is not supported; use \"code\"", r)
		}
	}
	c.ID, c.Name, c.Public = m.ClientID, m.Name, m.AuthMethod == AuthNone
	c.Grants, c.RedirectURIs, c.Audience = slices.Clone(m.Grants), slices.Clone(m.RedirectURIs), slices.Clone(m.Audience)
	c.Scopes = strings.Fields(m.Scope)
	c.WithoutPKCE, c.ResourceServer, c.FirstParty, c.Labels = !m.RequirePKCE, m.ResourceServer, m.FirstParty, m.Labels
	if len(c.Grants) == 0 {
		c.Grants = UsualGrants(c)
	}
	return errs
}

// UsualGrants returns the grants for a client registered without any. They never include password:
// RFC 9700 2.4 says that it must not be used, so it has to be requested explicitly.
func UsualGrants(c *Client) []Grant {
	if c.Public || len(c.RedirectURIs) > 0 {
		return []Grant{AuthorizationCode, RefreshToken}
	}
	return []Grant{ClientCredentials}
}
