package grants

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// TokenQuery is a parsed request to the introspection endpoint (RFC 7662 2.1) or the revocation
// endpoint (RFC 7009 2.1).
type TokenQuery struct {
	Credentials Credentials
	Remote      netip.Addr
	Token       string
	Hint        string // token_type_hint; unused, because the shape of a token shows its type
}

// Introspect returns the state of a token (RFC 7662). A client may ask about its own access tokens
// and about those that name it as an audience. A client registered as a resource server may ask
// about all access tokens. Refresh tokens are shown to their own client only. Every other token is
// reported as not active. A public client is refused, because RFC 7662 2.1 requires the caller to
// authenticate. Errors: *[Error], *[oautherr.LimitedError].
func (s *Service) Introspect(ctx context.Context, q TokenQuery) (Introspection, error) {
	client, _, err := s.authenticate(q.Credentials, q.Remote)
	if err != nil {
		return Introspection{}, err
	}
	if client.Public {
		return Introspection{}, fail(oautherr.InvalidClient, "A public client cannot introspect tokens.")
	}
	if q.Token == "" {
		return Introspection{}, fail(oautherr.InvalidRequest, "The parameter token is missing.")
	}
	ctx, err = s.enter(ctx, client, overload.Introspection, q.Remote)
	if err != nil {
		return Introspection{}, err
	}
	defer s.EndRequest()
	if err := s.meteredQuery(s.introspections, client, &q); err != nil {
		return Introspection{}, err
	}
	if looksSigned(q.Token) {
		return s.introspectAccessToken(ctx, client, q.Token)
	}
	return s.introspectRefreshToken(ctx, client, q.Token)
}

func (s *Service) introspectAccessToken(ctx context.Context, asking *clientcfg.Client, token string) (Introspection, error) {
	c, err := s.opts.Signer.Verify(token, s.opts.Now())
	if err != nil || !concerns(asking, &c) {
		return Introspection{}, nil //nolint:nilerr // RFC 7662 2.2: the answer does not show why it is not active
	}
	return s.introspectClaims(ctx, c)
}

// concerns reports whether the client may learn about the token. The audiences in the client's
// registration do not count: they are the APIs that the client calls, and other clients call them
// too.
func concerns(asking *clientcfg.Client, c *keys.Claims) bool {
	return asking.ResourceServer || c.ClientID == asking.ID || slices.Contains(c.Audience, asking.ID)
}

// introspectClaims returns the state of a token with a valid signature and expiry.
func (s *Service) introspectClaims(ctx context.Context, c keys.Claims) (Introspection, error) {
	auth := Authorization{ClientID: c.ClientID, UserStamp: c.UserStamp}
	names := []string{tokenName(c.ID)}
	if c.Family != "" {
		auth.Username = c.Subject
		names = append(names, familyNames(c.Family)...)
	}
	alive, err := s.alive(ctx, &auth, c.ClientStamp, names...)
	if !alive || err != nil {
		return Introspection{}, err
	}
	return Introspection{Active: true, TokenType: "Bearer", Username: auth.Username, Claims: c}, nil
}

func (s *Service) introspectRefreshToken(ctx context.Context, asking *clientcfg.Client, token string) (Introspection, error) {
	t, g, err := s.findToken(ctx, token)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Introspection{}, nil
	case err != nil:
		return Introspection{}, storeFailed("read refresh token", err)
	}
	if g.ClientID != asking.ID || t.generation != g.Generation || !s.opts.Now().Before(s.end(g)) {
		return Introspection{}, nil
	}
	alive, err := s.alive(ctx, &g.Authorization, g.ClientStamp, familyNames(g.Family)...)
	if !alive || err != nil {
		return Introspection{}, err
	}
	return Introspection{Active: true, Username: g.Username, Claims: keys.Claims{
		ClientID: g.ClientID, Subject: g.Username, Scopes: g.Scopes, Issuer: s.opts.Issuer, IssuedAt: g.IssuedAt, ExpiresAt: s.end(g),
	}}, nil
}

// newestClient returns the client as it was in the store at most catchUp ago, or nil if there is no
// readable client. While all clients are reloaded, the clients in memory may lack changes, so it
// reads this client from the store.
func (s *Service) newestClient(ctx context.Context, id string) (*clientcfg.Client, error) {
	err := s.opts.Clients.Renew(ctx, catchUp)
	if errors.Is(err, store.ErrMarkLost) {
		var stored clientcfg.Client
		stored, err = s.opts.Stored.Client(ctx, id)
		switch {
		case err == nil:
			return &stored, nil
		case errors.Is(err, clientcfg.ErrNotFound), errors.Is(err, clientcfg.ErrUnreadableClient):
			return nil, nil //nolint:nilnil // as of one that is not there
		}
	}
	if err != nil {
		return nil, storeFailed("read clients", err)
	}
	client, _ := s.opts.Clients.Client(id)
	return client, nil
}

// alive reports whether the client and user of a token still exist and neither they nor any of the
// names were revoked. It may ask for the newest clients because it needs the store anyway.
// Otherwise an instance that was paused would accept tokens that were revoked during the pause.
func (s *Service) alive(ctx context.Context, a *Authorization, clientStamp secret.Stamp, names ...string) (bool, error) {
	client, err := s.newestClient(ctx, a.ClientID)
	if client == nil || err != nil {
		return false, err
	}
	if !client.Stamp.Accepts(clientStamp) {
		return false, nil
	}
	revoked, err := s.store.Revoked(ctx, names...)
	if err != nil {
		return false, storeFailed("read revocations", err)
	}
	if revoked || a.Username == "" {
		return !revoked, nil
	}
	return s.signedIn(ctx, a)
}

// ErrBearer is wrapped in the error of [Service.Bearer] for an invalid token.
var ErrBearer = errors.New("grants: invalid access token")

// Bearer verifies an access token presented to an API of this server itself (RFC 6750). The token
// must be signed by this server, not expired and not revoked, and its client and user must still
// exist. The caller checks the audience and the scopes. Errors: [ErrBearer]; *[Error] if the store
// fails.
func (s *Service) Bearer(ctx context.Context, token string) (keys.Claims, error) {
	c, err := s.opts.Signer.Verify(token, s.opts.Now())
	if err != nil {
		return keys.Claims{}, errors.Join(ErrBearer, err)
	}
	in, err := s.introspectClaims(ctx, c)
	switch {
	case err != nil:
		return keys.Claims{}, err
	case !in.Active:
		return keys.Claims{}, ErrBearer
	}
	return c, nil
}
