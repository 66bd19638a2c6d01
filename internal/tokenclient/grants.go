package tokenclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// issue requests a new token with the grant of the request.
func (r *run) issue(ctx context.Context) (*Token, error) {
	m, err := r.metadata(ctx)
	if err != nil {
		return nil, err
	}
	switch r.req.Grant {
	case clientcfg.ClientCredentials:
		return r.ask(ctx, r.credentialsConfig(m).Token)
	case clientcfg.Password:
		return r.ask(ctx, func(ctx context.Context) (*oauth2.Token, error) {
			return r.config(m, "").PasswordCredentialsToken(ctx, r.req.Username, r.req.Password)
		})
	case clientcfg.RefreshToken:
		return r.refresh(ctx, Token{RefreshToken: r.req.RefreshToken})
	default:
		return r.authorize(ctx, m)
	}
}

// refresh requests a new token with the refresh token of the old one. The server rotates it: only
// the refresh token of the answer is valid afterwards.
func (r *run) refresh(ctx context.Context, old Token) (*Token, error) {
	m, err := r.metadata(ctx)
	if err != nil {
		return nil, err
	}
	t, err := r.ask(ctx, func(ctx context.Context) (*oauth2.Token, error) {
		spent := &oauth2.Token{RefreshToken: old.RefreshToken}
		return r.config(m, "").TokenSource(ctx, spent).Token()
	})
	if err != nil {
		return nil, err
	}
	if t.Scope == "" {
		t.Scope = old.Scope // left out when unchanged (RFC 6749 section 5.1)
	}
	return t, nil
}

// authorize lets a person sign in at the server, waits for the code, and redeems it.
func (r *run) authorize(ctx context.Context, m *Metadata) (*Token, error) {
	if m.AuthorizationEndpoint == "" {
		return nil, errors.New("the server has no authorization endpoint")
	}
	if len(m.ChallengeMethods) > 0 && !slices.Contains(m.ChallengeMethods, "S256") {
		return nil, errors.New("the server does not take PKCE with S256")
	}
	want := expectation{State: secret.New(), Issuer: m.Issuer, IssuerSent: m.SendsIssuer}
	l, err := listenLoopback(ctx, r.req.RedirectPort, r.req.RedirectPath, want, r.client.notify)
	if err != nil {
		return nil, err
	}
	config := r.config(m, l.redirectURI())
	verifier := oauth2.GenerateVerifier()
	address := config.AuthCodeURL(want.State, oauth2.S256ChallengeOption(verifier))
	code, err := l.receive(ctx, func() error { return r.client.Show(ctx, address) })
	if err != nil {
		return nil, err
	}
	return r.ask(ctx, func(ctx context.Context) (*oauth2.Token, error) {
		return config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	})
}

func (r *run) config(m *Metadata, redirectURI string) *oauth2.Config {
	return &oauth2.Config{
		ClientID:     r.req.ClientID,
		ClientSecret: r.req.ClientSecret,
		Scopes:       r.req.Scopes,
		RedirectURL:  redirectURI,
		Endpoint: oauth2.Endpoint{
			AuthURL:   m.AuthorizationEndpoint,
			TokenURL:  m.TokenEndpoint,
			AuthStyle: m.authStyle(r.req.ClientSecret),
		},
	}
}

func (r *run) credentialsConfig(m *Metadata) *clientcredentials.Config {
	return &clientcredentials.Config{
		ClientID:     r.req.ClientID,
		ClientSecret: r.req.ClientSecret,
		Scopes:       r.req.Scopes,
		TokenURL:     m.TokenEndpoint,
		AuthStyle:    m.authStyle(r.req.ClientSecret),
	}
}

// ask sends a token request, and repeats it after a 429 if the client is to wait. A 429 does not use
// up the code or the refresh token of the request.
func (r *run) ask(ctx context.Context, call func(context.Context) (*oauth2.Token, error)) (*Token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, r.client.HTTP)
	for {
		answer, err := call(ctx)
		if err == nil {
			return tokenFrom(answer, r.client.Now()), nil
		}
		err = serverError(err, r.client.Now())
		if err := r.waitToRetry(ctx, err); err != nil {
			return nil, err
		}
	}
}

// waitToRetry returns nil when it is time to retry. If it should not wait or the time does not
// suffice, it returns an error that wraps the failure.
func (r *run) waitToRetry(ctx context.Context, failure error) error {
	var refused *ServerError
	if !r.client.Wait || !errors.As(failure, &refused) || !refused.Limited() || refused.RetryAfter == 0 {
		return failure
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < refused.RetryAfter {
		return fmt.Errorf("%w; there is no time left to wait %s", failure, refused.RetryAfter)
	}
	r.client.notify("too many requests; waiting %s, as the server asks", refused.RetryAfter)
	timer := time.NewTimer(refused.RetryAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w; stopped waiting: %w", failure, ctx.Err())
	}
}
