// Package guard verifies who calls the admin API: a client or an operator with a token of this server,
// somebody with the key beside the data file, or the user of a command that has opened the store
// itself. It limits the failed attempts of an address, and never the requests with a good token.
package guard

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter"
	"oauth-server/internal/observe/accesslog"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/store"
)

// failuresAdmitted is how many requests with an invalid token an address may send per minute before
// they get 429. Requests with a valid token are always served.
const failuresAdmitted = 20

// Tokens verifies bearer tokens. [grants.Service] implements it.
type Tokens interface {
	// Bearer returns the claims of a valid token. It wraps [grants.ErrBearer] for an invalid token.
	// Any other error means that the token could not be checked.
	Bearer(ctx context.Context, token string) (keys.Claims, error)
}

// Users looks up users. [accounts.Users] implements it.
type Users interface {
	// User returns the user with that name, or an error that wraps [store.ErrNotFound].
	User(ctx context.Context, name string) (accounts.User, error)
}

// Options configure a [Guard].
type Options struct {
	// Operator makes every request one of this operator, without a token. Only it is needed then.
	Operator string
	Issuer   string // sent to callers without a token, because they can get one there
	Tokens   Tokens
	Users    Users
	Clients  *clientcfg.Source
	// LocalToken makes its sender an operator if it comes from a loopback address, because the
	// sender can read the files beside the data file. Empty disables it.
	LocalToken string
	Clock      func() time.Time // of the limit on failures
}

// Guard verifies tokens. It is safe for concurrent use.
type Guard struct {
	o        Options
	failures *counting.Counters
	limits   *ratelimit.Effective
}

// New returns a Guard.
func New(o Options) (*Guard, error) {
	limit := ratelimit.NewLimit("failures", failuresAdmitted, time.Minute)
	limits, err := ratelimit.Enforced(limit, limit)
	if err != nil {
		return nil, fmt.Errorf("admin: failed attempts limit: %w", err)
	}
	return &Guard{o: o, failures: counting.NewCounters(10_000), limits: limits}, nil
}

// Caller is the sender of a request.
type Caller struct {
	ClientID string
	Store    string // user of the store's key; there is no client then

	username string
	address  netip.Addr
	scopes   []string
	access   clientcfg.Access // of the user; a client's access is in its scopes
}

// Actor returns the caller as the author of a change.
func (c *Caller) Actor() clientcfg.Actor {
	a := clientcfg.Actor{ClientID: c.ClientID, Username: c.username, Store: c.Store}
	if c.address.IsValid() {
		a.Address = c.address.String()
	}
	return a
}

// Admit verifies the bearer token of a request. If the token belongs to a user, the user must be an
// operator now. The store is read each time, so a change takes effect at once. Errors:
// *problem.Error.
func (g *Guard) Admit(r *http.Request) (*Caller, error) {
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
		return nil, problem.Of(err)
	case !slices.Contains(claims.Audience, clientcfg.AdminAudience):
		return nil, g.refuse(from, "the token is for another API: its audience must be "+clientcfg.AdminAudience)
	}
	c := &Caller{ClientID: claims.ClientID, address: from, scopes: g.scopes(claims), access: clientcfg.WriteAccess}
	if claims.Family == "" {
		return c, nil
	}
	user, err := g.o.Users.User(r.Context(), claims.Subject)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, problem.Of(err)
	case !user.Operator.Allows(clientcfg.ScopeLimitsRead):
		return nil, notOperator("the user %q is not an operator", claims.Subject)
	}
	c.username, c.access = claims.Subject, user.Operator
	return c, nil
}

// local returns the caller if the token is the key beside the data file, or nil. The key works only
// from a loopback address.
func (g *Guard) local(r *http.Request, token string, from netip.Addr) *Caller {
	want := g.o.LocalToken
	if want == "" || subtle.ConstantTimeCompare([]byte(token), []byte(want)) != 1 || !from.Unmap().IsLoopback() {
		return nil
	}
	c := storeOperator("local")
	c.address = from
	if name := r.Header.Get(adminlocal.OperatorHeader); len(name) <= maxOperator && clientcfg.ValidateNote(name) == nil && name != "" {
		c.Store = name
	}
	return c
}

// storeOperator returns a caller who may do everything because the store is theirs.
func storeOperator(name string) *Caller {
	scopes := []string{clientcfg.ScopeLimitsWrite, clientcfg.ScopeRegistrationsWrite}
	return &Caller{access: clientcfg.WriteAccess, scopes: scopes, Store: name}
}

// maxOperator bounds the name that a holder of the key claims.
const maxOperator = 200

// scopes returns the token's scopes that its client still has.
func (g *Guard) scopes(claims keys.Claims) []string {
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

// May returns an error unless the caller has the scope, or the write scope that includes it, and
// the corresponding access.
func (c *Caller) May(scope string) error {
	if !c.access.Allows(scope) {
		return notOperator("the user %q may only read", c.username)
	}
	if slices.Contains(c.scopes, scope) || slices.Contains(c.scopes, including[scope]) {
		return nil
	}
	why := "this needs a token with the scope " + scope
	return Forbidden("Missing scope", why, fmt.Sprintf(`error_description="%s", scope="%s"`, why, scope))
}

// notOperator returns the error for a user without the required access. The detail names the user,
// so it must stay out of the header.
func notOperator(format, name string) error {
	return Forbidden("Not an operator", fmt.Sprintf(format, name), `error_description="the user may not do this"`)
}

// Forbidden returns the error for a valid token with insufficient rights (RFC 6750 3.1).
func Forbidden(title, detail, challenge string) *problem.Error {
	p := problem.New(http.StatusForbidden, problem.TypeForbidden, title, "%s", detail)
	p.Challenge = `Bearer realm="oauth-server admin", error="insufficient_scope", ` + challenge
	return p
}

// refuse returns the error for a request without a valid token, and counts the failure. why is
// empty if there is no token at all. Such a request is not counted, and gets no error code (RFC
// 6750 3.1).
func (g *Guard) refuse(from netip.Addr, why string) *problem.Error {
	if why == "" {
		p := problem.New(http.StatusUnauthorized, problem.TypeUnauthorized, "Token required",
			"send Authorization: Bearer with an access token of %s for the audience %s", g.o.Issuer, clientcfg.AdminAudience)
		p.Challenge = fmt.Sprintf(`Bearer realm="oauth-server admin", issuer="%s"`, g.o.Issuer)
		return p
	}
	d := g.failures.Take(g.o.Clock(), ratelimit.Key{ClientID: limiter.SourceOf(from)}, g.limits, 1)
	if d.Rejected() {
		p := problem.New(http.StatusTooManyRequests, problem.TypeThrottled, "Too many failed attempts",
			"too many requests with invalid tokens from this address; a valid token is still accepted")
		p.RetryAfter = d.RetryAfterSeconds()
		return p
	}
	p := problem.New(http.StatusUnauthorized, problem.TypeUnauthorized, "Invalid token", "%s", why)
	p.Challenge = fmt.Sprintf(`Bearer realm="oauth-server admin", issuer="%s", error="invalid_token", error_description="%s"`, g.o.Issuer, why)
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
