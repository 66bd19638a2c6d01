package grants

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Authorize checks an authorization request (RFC 6749 4.1.1) and returns the question for the user.
// While the client or its redirect URI is unverified, an error is shown to the user and never
// redirected, because the server must not be an open redirector. Errors: *[RedirectError] to send
// to the client, *[Error] to show to the user.
func (s *Service) Authorize(_ context.Context, req AuthorizeRequest) (*Prompt, error) {
	if req.ClientID == "" {
		return nil, fail(oautherr.InvalidRequest, "The parameter client_id is missing.")
	}
	client, ok := s.opts.Clients.Client(req.ClientID)
	if !ok {
		return nil, fail(oautherr.InvalidRequest, "The client_id is unknown.")
	}
	redirect, bad := chooseRedirect(client, req.RedirectURI)
	if bad != nil {
		return nil, bad
	}
	p := &Prompt{
		Client: client, RedirectURI: redirect, RedirectURISent: req.RedirectURI != "",
		State: req.State, Challenge: req.CodeChallenge,
	}
	if p.Scopes, bad = checkAuthorize(client, req); bad == nil {
		p.Interaction, bad = readInteraction(&req)
	}
	if bad != nil {
		return nil, &RedirectError{RedirectURI: redirect, State: req.State, Err: bad}
	}
	return p, nil
}

// checkAuthorize checks the parameters with errors that are redirected to the client.
func checkAuthorize(client *clientcfg.Client, req AuthorizeRequest) ([]string, *Error) {
	switch {
	case req.ResponseType == "":
		return nil, fail(oautherr.InvalidRequest, "The parameter response_type is missing.")
	case req.ResponseType != "code":
		return nil, fail(oautherr.UnsupportedResponseType, "The response_type must be code.")
	case !client.May(clientcfg.AuthorizationCode):
		return nil, fail(oautherr.UnauthorizedClient, "The client is not registered for the authorization_code grant.")
	}
	if err := checkChallenge(client, req.CodeChallenge, req.CodeChallengeMethod); err != nil {
		return nil, err
	}
	return grantScope(client, req.Scope)
}

// Approve issues the authorization code for a consent page that the user accepted, and remembers
// the consent. The session must come directly from [Service.Session]: Approve checks only its
// expiry, and the user is checked when the code is redeemed. A page gives one code. If it is
// answered again, Approve returns the same code until the code is redeemed or expires. Errors:
// [accounts.ErrNoSession], [ErrConsentPage], [ErrConsentUsed], *[oautherr.LimitedError], *[Error].
func (s *Service) Approve(ctx context.Context, p *Prompt, session accounts.Session, consent Consent) (code string, err error) {
	now := s.opts.Now()
	if !now.Before(session.ExpiresAt) {
		return "", accounts.ErrNoSession
	}
	if !registered(p.Client, p.RedirectURI) {
		return "", fail(oautherr.InvalidGrant, "The redirect_uri is not registered for this client.")
	}
	random, opened, err := consent.code(now)
	if err != nil {
		return "", err
	}
	code = SealCode(s.opts.Deriver, random)
	if err := s.countConsent(session.Key, answersOf); err != nil {
		return "", err
	}
	before, err := s.answered(ctx, secret.DigestOf(code), now)
	if err == nil && !before {
		err = s.issueCode(ctx, p, &session, code, opened.Add(pageLifetime), true)
		if errors.Is(err, store.ErrConflict) { // created by another request since the check above
			_, err = s.answered(ctx, secret.DigestOf(code), now)
		}
	}
	if err != nil {
		return "", err
	}
	return code, nil
}

// issueCode stores a code and the user's consent. asked is set if the user has just answered a
// consent page. The record is kept at least as long as the code. Errors: [store.ErrConflict] if the
// code exists, *[Error], *[oautherr.LimitedError].
func (s *Service) issueCode(ctx context.Context, p *Prompt, session *accounts.Session, code string, kept time.Time, asked bool) error {
	if err := s.countConsent(session.Key, ""); err != nil {
		return err
	}
	agreement, err := s.agree(ctx, p, session, asked)
	if err != nil {
		return err
	}
	now := s.opts.Now()
	record := Grant{
		Authorization: Authorization{
			ClientID: p.Client.ID, Username: session.Username, Scopes: p.Scopes,
			Family: agreement.newFamily(), AuthTime: session.CreatedAt, UserStamp: session.UserStamp,
		},
		Digest: secret.DigestOf(code), Challenge: p.Challenge, IssuedAt: now, ExpiresAt: later(now.Add(s.opts.CodeLifetime), kept),
		ClientStamp: p.Client.Stamp,
	}
	if p.RedirectURISent {
		record.RedirectURI = p.RedirectURI
	}
	err = s.store.CreateGrant(ctx, record)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		err = storeFailed("create authorization code", err)
	}
	return err
}
