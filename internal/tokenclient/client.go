package tokenclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"oauth-server/internal/clientcfg"
)

// Origin is how a token was obtained.
type Origin string

// The origins of a token.
const (
	Issued    Origin = "issued"    // requested with the grant of the request
	Refreshed Origin = "refreshed" // obtained with a refresh token
	Reused    Origin = "reused"    // taken from the cache, without a token request
)

// Result is a token and its origin.
type Result struct {
	Token  Token
	Origin Origin
	// Claims are nil if the token is opaque.
	Claims *Claims
	// CacheFile is where the token is cached; empty if it is not.
	CacheFile string
}

// Client gets tokens. Show, Notify and Wait are optional; their zero value disables them. A Client
// is safe for concurrent use if its functions are.
type Client struct {
	HTTP *http.Client     // see [NewHTTPClient]
	Now  func() time.Time // the clock
	// Show shows the address of the sign-in page to a person. Only the authorization_code grant
	// needs it. It must not wait for the sign-in.
	Show func(ctx context.Context, address string) error
	// Notify receives messages for a person: waiting, requesting anew, a cache that could not be
	// written. They never contain a secret.
	Notify func(message string)
	// Wait makes the client wait and retry after a 429 with Retry-After, if the deadline of the
	// context allows it.
	Wait bool
}

// Token returns a token for the request: a cached one that is fresh, otherwise a refreshed one,
// otherwise a new one. The context bounds everything, a person's sign-in included. The error is a
// [*ServerError] if the server refused, and wraps [ErrExposed] or [ErrForeign] for a cache file that
// cannot be used.
func (c *Client) Token(ctx context.Context, req Request) (*Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	r := &run{client: c, req: req}
	result, err := r.result(ctx)
	if err != nil {
		return nil, err
	}
	// The token is returned even if it cannot be verified.
	m, err := r.metadata(ctx)
	if err != nil {
		c.notify("the token could not be verified: %v", err)
	}
	result.Claims = readClaims(ctx, c.HTTP, m, result.Token.AccessToken, c.Now)
	return result, nil
}

func (c *Client) notify(format string, args ...any) {
	if c.Notify != nil {
		c.Notify(fmt.Sprintf(format, args...))
	}
}

// run is one call of [Client.Token].
type run struct {
	client *Client
	req    Request
	meta   *Metadata
}

func (r *run) metadata(ctx context.Context) (*Metadata, error) {
	if r.meta != nil {
		return r.meta, nil
	}
	m, err := Discover(ctx, r.client.HTTP, r.req.Issuer)
	if err != nil {
		return nil, err
	}
	r.meta = m
	return m, nil
}

func (r *run) result(ctx context.Context) (*Result, error) {
	switch {
	case !r.req.caches():
		t, err := r.issue(ctx)
		if err != nil {
			return nil, err
		}
		return &Result{Token: *t, Origin: r.freshOrigin()}, nil
	case r.req.Grant == clientcfg.RefreshToken && r.req.RefreshToken == "":
		return r.refreshCached(ctx)
	default:
		return r.locked(ctx, r.req.key(r.req.Grant), r.renew)
	}
}

// renewer returns a valid token, given the cached one; old is nil without a cached one.
type renewer func(ctx context.Context, old *Token) (*Token, Origin, error)

// locked calls renew while it holds the lock of the key's cache file. One of several processes
// requests a token and the others reuse it.
func (r *run) locked(ctx context.Context, key Key, renew renewer) (result *Result, err error) {
	path := r.req.cachePath(key)
	release, err := lockFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	old, err := r.load(path, key)
	if err != nil {
		return nil, err
	}
	t, origin, err := renew(ctx, old)
	if err != nil {
		return nil, err
	}
	result = &Result{Token: *t, Origin: origin, CacheFile: path}
	if origin == Reused {
		return result, nil
	}
	if err := saveEntry(path, &entry{Key: key, Token: *t}); err != nil {
		// Return the token anyway: it is valid, and its refresh token cannot be obtained again.
		r.client.notify("the token is not kept: %v", err)
		result.CacheFile = ""
	}
	return result, nil
}

func (r *run) load(path string, key Key) (*Token, error) {
	e, err := loadEntry(path)
	if err != nil || e == nil {
		return nil, err
	}
	if e.Key != key {
		return nil, fmt.Errorf("%w: %s is for %s by %s at %s", ErrForeign, path, e.Key.ClientID, e.Key.Grant, e.Key.Issuer)
	}
	return &e.Token, nil
}

// renew reuses the old token, refreshes it, or requests a new one, in this order.
func (r *run) renew(ctx context.Context, old *Token) (*Token, Origin, error) {
	if r.req.Force {
		old = nil
	}
	if old.Fresh(r.client.Now()) {
		return old, Reused, nil
	}
	if old != nil && old.RefreshToken != "" {
		t, err := r.refresh(ctx, *old)
		if err == nil {
			return t, Refreshed, nil
		}
		if !isInvalidGrant(err) {
			return nil, "", err
		}
		r.client.notify("the refresh token is not valid any more, so a new token is requested (%v)", err)
	}
	t, err := r.issue(ctx)
	return t, r.freshOrigin(), err
}

// refreshCached refreshes the cached token of a user grant, from whichever user grant it came.
func (r *run) refreshCached(ctx context.Context) (*Result, error) {
	for _, grant := range []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.Password} {
		key := r.req.key(grant)
		e, err := loadEntry(r.req.cachePath(key))
		if err != nil {
			return nil, err
		}
		if e == nil || e.Key != key || e.Token.RefreshToken == "" {
			continue
		}
		return r.locked(ctx, key, func(ctx context.Context, old *Token) (*Token, Origin, error) {
			if old == nil || old.RefreshToken == "" {
				return nil, "", errNoRefreshToken
			}
			t, err := r.refresh(ctx, *old)
			return t, Refreshed, err
		})
	}
	return nil, errNoRefreshToken
}

var errNoRefreshToken = errors.New("the cache holds no refresh token of this client, user and scope: get a token with authorization_code or password first, or give the refresh token")

func (r *run) freshOrigin() Origin {
	if r.req.Grant == clientcfg.RefreshToken {
		return Refreshed
	}
	return Issued
}

func isInvalidGrant(err error) bool {
	var refused *ServerError
	return errors.As(err, &refused) && refused.Code == "invalid_grant"
}
