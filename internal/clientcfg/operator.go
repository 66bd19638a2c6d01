package clientcfg

import (
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/ratelimit"
)

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

// operates reports whether the client can change anything over the admin API.
func (c *Client) operates() bool { return c.IsOperator() || c.Registers() }

// operatorPatience is the longest time that a limit may keep an operator from getting a token.
const operatorPatience = time.Minute

// modesJudged are the modes in which a client may be locked out: its mode at instances without a
// mode of their own, as most are, and its mode at this instance.
var modesJudged = []func(p *PolicySnapshot, clientID string) ratelimit.Mode{
	func(p *PolicySnapshot, clientID string) ratelimit.Mode { return p.live.SharedMode(clientID) },
	func(p *PolicySnapshot, clientID string) ratelimit.Mode { return p.live.For(clientID).Mode },
}

// LocksOut returns a [LockOutError] if an enforced limit of the snapshot would lock the operator's
// client out of the admin API: once used up, it admits less than one request a minute, or it denies
// everything in an outage. Enforced means at this instance, or at instances without a mode of their
// own.
func (p *PolicySnapshot) LocksOut(c *Client) error {
	for _, mode := range modesJudged {
		if err := p.locksOut(c, mode); err != nil {
			return err
		}
	}
	return nil
}

// locksOut is LocksOut for one of the modes.
func (p *PolicySnapshot) locksOut(c *Client, mode func(p *PolicySnapshot, clientID string) ratelimit.Mode) error {
	if !c.operates() {
		return nil
	}
	e := p.For(c.ID)
	if e.Trusted || mode(p, c.ID) != ratelimit.Enforce {
		return nil
	}
	lists := []*ratelimit.Limits{e.Total, e.Source}
	if c.May(ClientCredentials) {
		lists = append(lists, e.Client)
	}
	if c.ActsForUsers() {
		lists = append(lists, e.User)
	}
	for _, list := range lists {
		if l, does := c.lockedOutBy(list); does {
			return &LockOutError{ClientID: c.ID, Limit: l}
		}
	}
	if !c.ActsForUsers() {
		return nil
	}
	var first *LockOutError // in order of usernames, so that the same error is always reported and logged once
	for username, list := range e.Overrides() {
		if l, does := c.lockedOutBy(list); does && (first == nil || username < first.Username) {
			first = &LockOutError{ClientID: c.ID, Username: username, Limit: l}
		}
	}
	if first == nil {
		return nil
	}
	return first
}

// lockedOutBy returns a limit that would keep an operator's client out. It ignores limits that
// count only grants the client may not use.
func (c *Client) lockedOutBy(list *ratelimit.Limits) (ratelimit.Limit, bool) {
	var usable ratelimit.Grants
	for _, g := range c.Grants {
		usable |= ratelimit.GrantOf(string(g))
	}
	for _, l := range list.All() {
		if l.Grants != 0 && l.Grants&usable == 0 {
			continue
		}
		if l.Requests < leastRequests(l.Window) || l.OnOutage == ratelimit.Deny {
			return l, true
		}
	}
	return ratelimit.Limit{}, false
}

// leastRequests returns how many requests an operator needs per window.
func leastRequests(window time.Duration) int64 {
	return int64((window + operatorPatience - 1) / operatorPatience)
}

// LockOutError is returned for a limit that would lock out an operator's client.
type LockOutError struct {
	ClientID string
	Username string // of the override that has the limit; empty without an override
	Limit    ratelimit.Limit
}

// Error implements error.
func (e *LockOutError) Error() string {
	who, instead := fmt.Sprintf("the admin client %q", e.ClientID), "or give it limits of its own"
	if e.Username != "" {
		who, instead = fmt.Sprintf("the user %q of the admin client %q", e.Username, e.ClientID), "or give that user higher limits"
	}
	if e.Limit.Requests >= leastRequests(e.Limit.Window) {
		return fmt.Sprintf("the limit %q denies everything whose count cannot be stored (on_outage: deny), which would lock out %s; "+
			"trust that client first, %s", e.Limit.Name, who, instead)
	}
	return fmt.Sprintf("the limit %q of %d requests in %v would lock out %s, which needs at least %d in that window; "+
		"trust that client first, %s", e.Limit.Name, e.Limit.Requests, e.Limit.Window, who, leastRequests(e.Limit.Window), instead)
}
