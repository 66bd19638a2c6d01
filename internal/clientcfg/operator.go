package clientcfg

import "slices"

// Tokens for the admin API have its audience and one of its scopes.
const (
	// AdminAudience is the aud of tokens for the admin API. It is a URN, because the address
	// differs between instances.
	AdminAudience = "urn:oauth-server:admin"
	// ScopeLimitsRead allows reading limits and counters.
	ScopeLimitsRead = "ratelimit:read"
	// ScopeLimitsWrite allows changing them.
	ScopeLimitsWrite = "ratelimit:write"
	// ScopeRegistrationsRead allows reading clients, users and their sign-ins.
	ScopeRegistrationsRead = "registrations:read"
	// ScopeRegistrationsWrite allows changing them. Its holder can register a client with any
	// scope.
	ScopeRegistrationsWrite = "registrations:write"
)

// Access is an operator's access level for the admin API. The operator is a client or a user.
type Access string

// The levels of access. An unknown level, which a newer release may have stored, gives no access.
const (
	NoAccess    Access = ""
	ReadAccess  Access = "read"
	WriteAccess Access = "write" // includes read
)

// Allows reports whether the level covers the scope.
func (a Access) Allows(scope string) bool {
	return a == WriteAccess || a == ReadAccess && (scope == ScopeLimitsRead || scope == ScopeRegistrationsRead)
}

// MakeOperator adds the scopes and the audience for the admin API to a registration. It adds no
// grant: with client_credentials the secret alone would suffice, and no user could be named.
func MakeOperator(c *Client) {
	makeOperator(c, ScopeLimitsRead, ScopeLimitsWrite, ScopeRegistrationsRead, ScopeRegistrationsWrite)
}

// MakeReader is like MakeOperator, with read access only.
func MakeReader(c *Client) { makeOperator(c, ScopeLimitsRead, ScopeRegistrationsRead) }

func makeOperator(c *Client, scopes ...string) {
	add := func(list []string, values ...string) []string {
		for _, v := range values {
			if !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
		return list
	}
	c.Scopes = add(c.Scopes, scopes...)
	c.Audience = add(c.Audience, AdminAudience)
}

// IsOperator reports whether the client can get tokens for changing limits.
func (c *Client) IsOperator() bool {
	return slices.Contains(c.Audience, AdminAudience) && slices.Contains(c.Scopes, ScopeLimitsWrite)
}

// Registers reports whether the client can get tokens for changing clients and users.
func (c *Client) Registers() bool {
	return slices.Contains(c.Audience, AdminAudience) && slices.Contains(c.Scopes, ScopeRegistrationsWrite) &&
		(c.May(ClientCredentials) || c.ActsForUsers())
}

// Operates reports whether the client can change anything over the admin API.
func (c *Client) Operates() bool { return c.IsOperator() || c.Registers() }
