package tokenclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"oauth-server/internal/clientcfg"
)

// Origin is where a token came from.
type Origin string

// The three ways to come by a token, dearest first.
const (
	Issued    Origin = "issued"    // asked for with the grant
	Refreshed Origin = "refreshed" // bought with a refresh token
	Reused    Origin = "reused"    // from the cache, nothing was asked
)

// Result is a token and how it was come by.
type Result struct {
	Token  Token
	Origin Origin
	// Claims are nil if the token is opaque.
	Claims *Claims
	// CacheFile is where the token is kept; empty if it is not.
	CacheFile string
}

// Client gets tokens. The zero value of each optional field switches its
// feature off. It is safe for concurrent use if its functions are.
type Client struct {
	HTTP *http.Client     // see [NewHTTPClient]
	Now  func() time.Time // the clock
	// Show brings the address of the sign-in page before a person; needed
	// for the authorization_code grant only.
	Show func(ctx context.Context, address string) error
	// Notify, optional, is told in plain words what a person should know:
	// waiting, falling back, a cache that could not be written. Never a secret.
	Notify func(message string)
	// Wait makes the client wait when it is told to retry later, as far as
	// the context's deadline allows.
	Wait bool
}

// Token returns a token for the request: a cached one that is fresh, else a
// refreshed one, else a new one. The context bounds everything, the person's
// signing in included. Refusals by the server are a [*ServerError].
func (c *Client) Token(ctx context.Context, req Request) (*Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	r := &run{client: c, req: req}
	result, err := r.result(ctx)
	if err != nil {
		return nil, err
	}
	// Best effort: that the keys cannot be read must not cost the token.
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

// renewer makes of what the cache holds, which may be nothing, a good token.
type renewer func(ctx context.Context, old *Token) (*Token, Origin, error)

// locked does it with the cache file of the key locked, so that of many
// processes one asks and the others reuse its token.
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
		// The token is good, and a refresh token cannot be had twice: hand
		// it over rather than fail.
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

// renew reuses, refreshes or asks anew, in this order.
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
		r.client.notify("the refresh token is no longer good, so a new token is asked for (%v)", err)
	}
	t, err := r.issue(ctx)
	return t, r.freshOrigin(), err
}

// refreshCached refreshes what an earlier run kept, whichever of the user
// grants it came by.
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
