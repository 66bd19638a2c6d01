package grants

import (
	"context"
	"errors"
	"slices"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Token answers a token request (RFC 6749 3.2), following the steps in the package documentation.
// Errors: *[Error], *[oautherr.LimitedError].
func (s *Service) Token(ctx context.Context, req TokenRequest) (TokenResponse, error) {
	if req.GrantType == "" {
		return TokenResponse{}, fail(oautherr.InvalidRequest, "The parameter grant_type is missing.")
	}
	client, used, err := s.authenticate(req.Credentials, req.Remote)
	if err != nil {
		return TokenResponse{}, err
	}
	grant, err := allowedGrant(client, req.GrantType)
	if err != nil {
		return TokenResponse{}, err
	}
	if page := req.Credentials.Page; grant == clientcfg.Password && !page.SameSite && page.foreign(client) {
		return TokenResponse{}, fail(oautherr.UnauthorizedClient, "A web page can use the password grant only if its origin is that of a redirect_uri of the client.")
	}
	if !s.refusedAnyway(client, grant, &req) {
		if ctx, err = s.enter(ctx, client, classOfGrant[grant], req.Remote); err != nil {
			return TokenResponse{}, err
		}
		defer s.EndRequest()
	}
	x, err := s.look(ctx, client, grant, req)
	if err != nil {
		return TokenResponse{}, err
	}
	x.credential = used
	defer x.endReuse()
	fields, err := s.admit(ctx, x, req)
	switch {
	case err != nil:
		return TokenResponse{}, err
	case x.reuse != nil && x.reuse.again.text != "":
		return s.again(x, fields), nil
	}
	answer, err := s.take(ctx, x)
	if err != nil {
		return TokenResponse{}, err
	}
	s.keep(x, answer.AccessToken)
	s.issued(x)
	answer.RateLimit = fields
	return answer, nil
}

// allowedGrant returns the grant with that name if it exists and the client may use it.
func allowedGrant(client *clientcfg.Client, raw string) (clientcfg.Grant, error) {
	grant := clientcfg.Grant(raw)
	if !slices.Contains(clientcfg.Grants(), grant) {
		return "", fail(oautherr.UnsupportedGrantType, "This grant_type is not supported.")
	}
	if !client.May(grant) || grant == clientcfg.ClientCredentials && client.Public {
		return "", fail(oautherr.UnauthorizedClient, "The client is not registered for this grant_type.")
	}
	return grant, nil
}

// look checks the grant and consumes nothing. It returns everything that take needs.
func (s *Service) look(ctx context.Context, client *clientcfg.Client, grant clientcfg.Grant, req TokenRequest) (*issuance, error) {
	now := s.opts.Now()
	x := &issuance{client: client, grant: grant, remote: req.Remote, now: now}
	var err error
	switch grant {
	case clientcfg.ClientCredentials:
		err = s.lookClientCredentials(x, req)
	case clientcfg.AuthorizationCode:
		err = s.metered(client, req.place(client), func() error { return s.lookCode(ctx, x, req) })
	case clientcfg.RefreshToken:
		err = s.metered(client, req.place(client), func() error { return s.lookRefreshToken(ctx, x, req) })
	case clientcfg.Password:
		err = s.lookPassword(ctx, x, req)
	}
	if err != nil {
		return nil, err
	}
	if grant != clientcfg.ClientCredentials && client.May(clientcfg.RefreshToken) {
		s.prepareNext(x)
	}
	return x, nil
}

func (s *Service) lookClientCredentials(x *issuance, req TokenRequest) error {
	scopes, err := grantScope(x.client, req.Scope)
	if err != nil {
		return err
	}
	x.scopes, x.auth = scopes, Authorization{ClientID: x.client.ID, Scopes: scopes}
	return nil
}

func (s *Service) lookPassword(ctx context.Context, x *issuance, req TokenRequest) error {
	if req.Username == "" || req.Password == "" {
		return fail(oautherr.InvalidRequest, "The parameters username and password are required.")
	}
	scopes, bad := grantScope(x.client, req.Scope)
	if bad != nil {
		return bad
	}
	name := accounts.Typed(req.Username)
	x.scopes = scopes
	x.auth = Authorization{ClientID: x.client.ID, Username: string(name), Scopes: scopes, Family: secret.ID(), AuthTime: x.now}
	if err := s.deniedAlready(ctx, x); err != nil {
		return err
	}
	user, err := s.accounts.CheckPassword(ctx, name, req.Password, req.place(x.client))
	switch {
	case errors.Is(err, accounts.ErrUsername):
		return fail(oautherr.InvalidGrant, "The username or the password is wrong. This is not a valid username for a new user: it is too long, or contains a space, a symbol or another invalid character.")
	case errors.Is(err, accounts.ErrSignIn):
		return fail(oautherr.InvalidGrant, "The username or the password is wrong.")
	case err != nil:
		return s.notSignedIn(ctx, err)
	}
	x.auth.Username, x.auth.UserStamp = user.Name, user.Stamp
	return nil
}

func (s *Service) lookCode(ctx context.Context, x *issuance, req TokenRequest) error {
	if req.Code == "" {
		return fail(oautherr.InvalidRequest, "The parameter code is missing.")
	}
	if !s.isCode(req.Code) {
		return x.unknown()
	}
	x.sent = refreshToken{secret: req.Code}
	err := s.lookGrant(ctx, x)
	if err == nil {
		err = s.checkCode(ctx, x, &req)
	}
	if err != nil {
		return err
	}
	next := x.found.Redeemed()
	x.next = &next
	return s.checkGrant(ctx, x, "")
}

func (s *Service) lookRefreshToken(ctx context.Context, x *issuance, req TokenRequest) (err error) {
	if req.RefreshToken == "" {
		return fail(oautherr.InvalidRequest, "The parameter refresh_token is missing.")
	}
	sent, sealed := s.unseal(req.RefreshToken)
	if !sealed {
		return x.unknown()
	}
	x.sent = sent
	if err = s.lookGrant(ctx, x); err == nil {
		err = s.usable(ctx, x)
	}
	if err != nil {
		return err
	}
	return s.checkGrant(ctx, x, req.Scope)
}

// what names what the client presented.
func (x *issuance) what() string {
	if x.grant == clientcfg.AuthorizationCode {
		return "authorization code"
	}
	return "refresh token"
}

func (x *issuance) unknown() error {
	return fail(oautherr.InvalidGrant, "The "+x.what()+" is unknown or has expired.")
}

// lookGrant reads the code or the refresh token that the client has sent.
func (s *Service) lookGrant(ctx context.Context, x *issuance) error {
	g, err := s.find(ctx, x.sent)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return x.unknown()
	case err != nil:
		return storeFailed("read "+x.what(), err)
	case g.ClientID != x.client.ID:
		return fail(oautherr.InvalidGrant, "The "+x.what()+" was issued to another client.")
	}
	x.found, x.auth = g, g.Authorization
	return nil
}

// checkCode checks what only a code has.
func (s *Service) checkCode(ctx context.Context, x *issuance, req *TokenRequest) error {
	switch {
	case x.found.Claimed:
		return s.replayed(ctx, x.auth, 0)
	case s.codeExpired(x.found, x.now):
		return x.unknown()
	}
	if bad := checkTokenRedirect(x.client, x.found.RedirectURI, req.RedirectURI); bad != nil {
		return bad
	}
	if bad := checkVerifier(x.found.Challenge, req.CodeVerifier); bad != nil {
		return bad
	}
	return nil
}

// checkGrant checks what codes and refresh tokens have in common, and sets the scope of the access
// token.
func (s *Service) checkGrant(ctx context.Context, x *issuance, scope string) error {
	if err := x.checkClient(); err != nil {
		return err
	}
	if err := s.checkFamily(ctx, x); err != nil {
		return err
	}
	if err := s.checkUser(ctx, &x.auth); err != nil {
		return err
	}
	scopes, bad := refreshScope(x.client, x.auth.Scopes, scope)
	if bad != nil {
		return bad
	}
	x.scopes = scopes
	return nil
}

// catchUp is how long an instance takes to read a client's change.
const catchUp = 2 * time.Second

// checkClient refuses a grant that belongs to a different client with the same client_id, or dates
// from before the client's last revocation. If the stamp is newer than this instance's client,
// another instance already knew of a revocation that this one has yet to read. Tokens issued now
// would count as issued before it, so checkClient asks the client to retry.
func (x *issuance) checkClient() error {
	switch {
	case !x.client.Stamp.Accepts(x.found.ClientStamp):
		return x.unknown()
	case x.client.Stamp.Behind(x.found.ClientStamp):
		return &Error{
			Code: oautherr.TemporarilyUnavailable, RetryAfter: catchUp,
			Description: "The client was changed a moment ago; retry after " + oautherr.Seconds(catchUp) + ".",
		}
	}
	return nil
}

// checkTokenRedirect compares the redirect_uri of the token request with the one of the
// authorization request. If the authorization request had one, the token request must repeat it
// exactly (RFC 6749 4.1.3). Otherwise the token request may omit it or send any registered URI.
func checkTokenRedirect(client *clientcfg.Client, authorized, presented string) *Error {
	switch {
	case authorized != "" && presented == "":
		return fail(oautherr.InvalidRequest, "The parameter redirect_uri is missing: the authorization request had one.")
	case authorized != "" && authorized != presented:
		return fail(oautherr.InvalidGrant, "The redirect_uri differs from the authorization request.")
	case authorized == "" && presented != "":
		if _, err := chooseRedirect(client, presented); err != nil {
			return fail(oautherr.InvalidGrant, "The redirect_uri differs from the authorization request.")
		}
	}
	return nil
}

// checkFamily refuses a grant if its family was revoked or its agreement was withdrawn.
func (s *Service) checkFamily(ctx context.Context, x *issuance) error {
	revoked, err := s.store.Revoked(ctx, familyNames(x.auth.Family)...)
	switch {
	case err != nil:
		return storeFailed("read revocations", err)
	case revoked:
		return fail(oautherr.InvalidGrant, "The "+x.what()+" was revoked.")
	}
	return nil
}
