package tokenclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

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

// errNoRefreshToken is the error of a refresh without a cached refresh token.
var errNoRefreshToken = errors.New("the cache has no refresh token for this client, user and scope: first get a token with authorization_code or password, or give a refresh token")

// Token returns a token for the request: a cached one that is fresh, otherwise a refreshed one,
// otherwise a new one. The context bounds everything, a person's sign-in included. The error is a
// [*ServerError] if the server refused, and wraps [ErrExposed] or [ErrForeign] for a cache file that
// cannot be used.
func (c *Client) Token(ctx context.Context, req Request) (*Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	r := &run{Client: c, Request: req, metadata: sync.OnceValues(func() (*Metadata, error) {
		return Discover(ctx, c.HTTP, req.Issuer)
	})}
	result, err := r.cached(ctx)
	if err != nil {
		return nil, err
	}
	// The token is returned even if it cannot be verified.
	m, err := r.metadata()
	if err != nil {
		r.notify("the token could not be verified: %v", err)
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
	*Client
	Request
	metadata func() (*Metadata, error) // fetches once
}

// cached returns the token of the cache file, renewed if needed. It holds the file's lock, so of
// several processes one requests a token and the others reuse it.
func (r *run) cached(ctx context.Context) (result *Result, err error) {
	if !r.caches() {
		t, origin, err := r.renew(ctx, nil)
		return &Result{Token: t, Origin: origin}, err
	}
	key := r.key()
	path := r.cachePath(key)
	unlock, err := lockFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	e, err := loadEntry(path)
	if err != nil {
		return nil, err
	}
	var old *Token
	switch {
	case e == nil:
	case e.Key == key:
		old = &e.Token
	case !r.refreshesCached(): // that reports that there is no refresh token
		return nil, fmt.Errorf("%w: %s is for %s by %s at %s", ErrForeign, path, e.Key.ClientID, e.Key.Grant, e.Key.Issuer)
	}
	t, origin, err := r.renew(ctx, old)
	if err != nil {
		return nil, err
	}
	result = &Result{Token: t, Origin: origin, CacheFile: path}
	if origin == Reused {
		return result, nil
	}
	if err := saveEntry(path, &entry{Key: key, Token: t}); err != nil {
		// Return the token anyway: it is valid, and its refresh token cannot be obtained again.
		r.notify("the token was not cached: %v", err)
		result.CacheFile = ""
	}
	return result, nil
}

// renew reuses the old token, refreshes it, or requests a new one, in this order. A nil old token
// means that the cache has none.
func (r *run) renew(ctx context.Context, old *Token) (Token, Origin, error) {
	refreshable := old != nil && old.RefreshToken != ""
	switch {
	case r.refreshesCached():
		if !refreshable {
			return Token{}, "", errNoRefreshToken
		}
		t, err := r.refresh(ctx, *old)
		return t, Refreshed, err
	case r.Force:
	case old.Fresh(r.Now()):
		return *old, Reused, nil
	case refreshable:
		t, err := r.refresh(ctx, *old)
		var refused *ServerError
		if !errors.As(err, &refused) || refused.Code != "invalid_grant" {
			return t, Refreshed, err
		}
		r.notify("the refresh token is no longer valid; requesting a new token (%v)", err)
	}
	if r.Grant == clientcfg.RefreshToken {
		t, err := r.refresh(ctx, Token{RefreshToken: r.RefreshToken})
		return t, Refreshed, err
	}
	t, err := r.issue(ctx)
	return t, Issued, err
}

// issue requests a new token with the grant of the request.
func (r *run) issue(ctx context.Context) (Token, error) {
	m, err := r.metadata()
	if err != nil {
		return Token{}, err
	}
	config := r.config(m)
	switch r.Grant {
	case clientcfg.ClientCredentials:
		machine := clientcredentials.Config{
			ClientID: config.ClientID, ClientSecret: config.ClientSecret, Scopes: config.Scopes,
			TokenURL: config.Endpoint.TokenURL, AuthStyle: config.Endpoint.AuthStyle,
		}
		return r.ask(ctx, machine.Token)
	case clientcfg.Password:
		return r.ask(ctx, func(ctx context.Context) (*oauth2.Token, error) {
			return config.PasswordCredentialsToken(ctx, r.Username, r.Password)
		})
	default:
		return r.authorize(ctx, m, config)
	}
}

// refresh requests a new token with the refresh token of the old one. The server rotates it: only
// the refresh token of the answer is valid afterwards.
func (r *run) refresh(ctx context.Context, old Token) (Token, error) {
	m, err := r.metadata()
	if err != nil {
		return Token{}, err
	}
	t, err := r.ask(ctx, func(ctx context.Context) (*oauth2.Token, error) {
		return r.config(m).TokenSource(ctx, &oauth2.Token{RefreshToken: old.RefreshToken}).Token()
	})
	if t.Scope == "" {
		t.Scope = old.Scope // left out when unchanged (RFC 6749 section 5.1)
	}
	return t, err
}

func (r *run) config(m *Metadata) *oauth2.Config {
	return &oauth2.Config{
		ClientID:     r.ClientID,
		ClientSecret: r.ClientSecret,
		Scopes:       r.Scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL:   m.AuthorizationEndpoint,
			TokenURL:  m.TokenEndpoint,
			AuthStyle: m.authStyle(r.ClientSecret),
		},
	}
}

// ask sends a token request, and repeats it after a 429 if the client is to wait. A 429 does not use
// up the code or the refresh token of the request.
func (r *run) ask(ctx context.Context, call func(context.Context) (*oauth2.Token, error)) (Token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, r.HTTP)
	for {
		answer, err := call(ctx)
		if err == nil {
			return tokenFrom(answer, r.Now()), nil
		}
		if err := r.waitToRetry(ctx, serverError(err, r.Now())); err != nil {
			return Token{}, err
		}
	}
}

// waitToRetry returns nil when it is time to retry. If it should not wait or the time does not
// suffice, it returns an error that wraps the failure.
func (r *run) waitToRetry(ctx context.Context, failure error) error {
	var refused *ServerError
	if !r.Wait || !errors.As(failure, &refused) || !refused.Limited() || refused.RetryAfter == 0 {
		return failure
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < refused.RetryAfter {
		return fmt.Errorf("%w; cannot wait %s before the timeout", failure, refused.RetryAfter)
	}
	r.notify("too many requests; waiting %s", refused.RetryAfter)
	select {
	case <-time.After(refused.RetryAfter):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w; stopped waiting: %w", failure, ctx.Err())
	}
}
