package admin

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
)

// failuresAdmitted is how many requests with an invalid token an address may send per minute before
// they get 429. Requests with a valid token are always served.
const failuresAdmitted = 20

// guard verifies tokens.
type guard struct {
	o        *Options
	failures *ratelimit.Counters
	limits   *ratelimit.Effective
}

func newGuard(o *Options) (*guard, error) {
	limit := ratelimit.NewLimit("failures", failuresAdmitted, time.Minute)
	limits, err := ratelimit.Enforced(limit, limit)
	if err != nil {
		return nil, fmt.Errorf("admin: limit of failures: %w", err)
	}
	return &guard{o: o, failures: ratelimit.NewCounters(10_000), limits: limits}, nil
}

// caller is the sender of a request.
type caller struct {
	clientID, username string
	address            netip.Addr
	scopes             []string
	access             clientcfg.Access // of the user; a client's access is in its scopes
	store              string           // user of the store's key; there is no client then
}

func (c *caller) actor() clientcfg.Actor {
	a := clientcfg.Actor{ClientID: c.clientID, Username: c.username, Store: c.store}
	if c.address.IsValid() {
		a.Address = c.address.String()
	}
	return a
}

// admit verifies the bearer token of a request. If the token belongs to a user, the user must be an
// operator now. The store is read each time, so a change takes effect at once. Errors:
// *problemError.
func (g *guard) admit(r *http.Request) (*caller, error) {
	if operator := g.o.Operator; operator != "" {
		return storeOperator(operator), nil
	}
	from := accesslog.Peer(r)
	token, ok := bearer(r.Header)
	if !ok {
		return nil, g.refuse(from, "")
	}
	if c := g.local(r, token, from); c != nil {
		return c, nil
	}
	claims, err := g.o.Tokens.Bearer(r.Context(), token)
	switch {
	case errors.Is(err, grants.ErrBearer):
		return nil, g.refuse(from, "the token is unknown, expired or revoked")
	case err != nil:
		return nil, problemOf(err)
	case !slices.Contains(claims.Audience, clientcfg.AdminAudience):
		return nil, g.refuse(from, "the token is not meant for this API: its audience must be "+clientcfg.AdminAudience)
	}
	c := &caller{clientID: claims.ClientID, address: from, scopes: g.scopes(claims), access: clientcfg.WriteAccess}
	if claims.Family == "" {
		return c, nil
	}
	user, err := g.o.Users.User(r.Context(), claims.Subject)
	switch {
	case err != nil && !errors.Is(err, grants.ErrNotFound):
		return nil, problemOf(err)
	case !user.Operator.Allows(clientcfg.ScopeLimitsRead):
		return nil, notOperator("the user %q is not an operator", claims.Subject)
	}
	c.username, c.access = claims.Subject, user.Operator
	return c, nil
}

// local returns the caller if the token is the key beside the data file, or nil. The key works only
// from a loopback address.
func (g *guard) local(r *http.Request, token string, from netip.Addr) *caller {
	want := g.o.LocalToken
	if want == "" || subtle.ConstantTimeCompare([]byte(token), []byte(want)) != 1 || !from.Unmap().IsLoopback() {
		return nil
	}
	c := storeOperator("local")
	c.address = from
	if name := r.Header.Get(adminlocal.OperatorHeader); len(name) <= maxOperator && clientcfg.ValidateNote(name) == nil && name != "" {
		c.store = name
	}
	return c
}

// storeOperator returns a caller who may do everything because the store is theirs.
func storeOperator(name string) *caller {
	scopes := []string{clientcfg.ScopeLimitsWrite, clientcfg.ScopeRegistrationsWrite}
	return &caller{access: clientcfg.WriteAccess, scopes: scopes, store: name}
}

// maxOperator bounds the name that a holder of the key claims.
const maxOperator = 200

// scopes returns the token's scopes that its client still has.
func (g *guard) scopes(claims keys.Claims) []string {
	client, ok := g.o.Clients.Directory().Client(claims.ClientID)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(claims.Scopes), func(s string) bool { return !slices.Contains(client.Scopes, s) })
}

// including maps a read scope to the write scope that includes it.
var including = map[string]string{
	clientcfg.ScopeLimitsRead: clientcfg.ScopeLimitsWrite, clientcfg.ScopeRegistrationsRead: clientcfg.ScopeRegistrationsWrite,
}

// may returns an error unless the caller has the scope, or the write scope that includes it, and
// the corresponding access.
func (c *caller) may(scope string) error {
	if !c.access.Allows(scope) {
		return notOperator("the user %q may only read", c.username)
	}
	if slices.Contains(c.scopes, scope) || slices.Contains(c.scopes, including[scope]) {
		return nil
	}
	why := "this needs a token with the scope " + scope
	return forbidden("Scope missing", why, fmt.Sprintf(`error_description="%s", scope="%s"`, why, scope))
}

// notOperator returns the error for a user without the required access. The detail names the user,
// so it must stay out of the header.
func notOperator(format, name string) error {
	return forbidden("Not an operator", fmt.Sprintf(format, name), `error_description="the user may not do this"`)
}

// forbidden returns the error for a valid token with insufficient rights (RFC 6750 3.1).
func forbidden(title, detail, challenge string) *problemError {
	p := problem(http.StatusForbidden, typeForbidden, title, "%s", detail)
	p.challenge = `Bearer realm="oauth-server admin", error="insufficient_scope", ` + challenge
	return p
}

// refuse returns the error for a request without a valid token, and counts the failure. why is
// empty if there is no token at all. Such a request is not counted, and gets no error code (RFC
// 6750 3.1).
func (g *guard) refuse(from netip.Addr, why string) *problemError {
	if why == "" {
		p := problem(http.StatusUnauthorized, typeUnauthorized, "Token needed",
			"send Authorization: Bearer with an access token of %s for the audience %s", g.o.Issuer, clientcfg.AdminAudience)
		p.challenge = fmt.Sprintf(`Bearer realm="oauth-server admin", issuer="%s"`, g.o.Issuer)
		return p
	}
	d := g.failures.Take(g.o.Clock(), ratelimit.Key{ClientID: limiter.SourceOf(from)}, g.limits, 1)
	if d.Rejected() {
		p := problem(http.StatusTooManyRequests, typeThrottled, "Too many failed attempts",
			"too many requests with bad tokens came from this address; a good token is still heard")
		p.retryAfter = d.RetryAfterSeconds()
		return p
	}
	p := problem(http.StatusUnauthorized, typeUnauthorized, "Token refused", "%s", why)
	p.challenge = fmt.Sprintf(`Bearer realm="oauth-server admin", issuer="%s", error="invalid_token", error_description="%s"`, g.o.Issuer, why)
	return p
}

// bearer returns the token in the Authorization header (RFC 6750 2.1), the only place where it is
// accepted.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	return strings.TrimLeft(token, " "), ok && strings.EqualFold(scheme, "Bearer")
}
