package grants

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// An agreement is the remembered consent of a user to a client. Every code of the two comes of one, also
// where the page is shown each time, so that the user can withdraw it: the names of its families begin
// with its ID, and withdrawing revokes the ID. No clock and no list of families has a part in it.

const (
	// agreementKept is how long an agreement is remembered that is not used.
	agreementKept = 365 * 24 * time.Hour
	// agreementRefresh is the age at which its last use is stored anew.
	agreementRefresh = 24 * time.Hour
	// agreeAttempts bounds how often an agreement is read again because others changed it.
	agreeAttempts = 8
)

// newFamily returns the name of a new family that comes of the agreement.
func (a *Agreement) newFamily() string { return a.ID + "." + secret.ID() }

// familyNames are the names under which a family may be revoked: its own, and its agreement's. A family
// of the password grant has no agreement. IDs have no dots.
func familyNames(family string) []string {
	names := []string{familyName(family)}
	if agreement, _, ok := strings.Cut(family, "."); ok {
		names = append(names, agreementName(agreement))
	}
	return names
}

func agreementName(id string) string { return "agreement:" + id }

// agreement returns what the user allows the client, the zero value if that is nothing. stored is what is
// in the store, which may be void.
func (s *Service) agreement(ctx context.Context, client *clientcfg.Client, username string) (holds, stored Agreement, err error) {
	stored, err = s.store.Agreement(ctx, username, client.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return holds, stored, nil
	case err != nil:
		return holds, stored, storeFailed("read agreement", err)
	}
	ok, err := s.holds(ctx, client, &stored)
	if ok {
		holds = stored
	}
	return holds, stored, err
}

// holds reports whether the agreement is of this client and of a user who is there still, neither of them
// was revoked since, and it was not withdrawn.
func (s *Service) holds(ctx context.Context, client *clientcfg.Client, a *Agreement) (bool, error) {
	if !s.opts.Now().Before(a.ExpiresAt) {
		return false, nil
	}
	if !client.Stamp.Accepts(a.ClientStamp) {
		return false, nil
	}
	if ok, err := s.signedIn(ctx, a.Username, a.UserStamp); !ok || err != nil {
		return false, err
	}
	withdrawn, err := s.store.Revoked(ctx, agreementName(a.ID))
	if err != nil {
		return false, storeFailed("read revocations", err)
	}
	return !withdrawn, nil
}

// agree returns the agreement that the user of the session has with the client, and stores that it allows
// the scopes of the prompt. asked is set if the user has just answered a page.
func (s *Service) agree(ctx context.Context, p *Prompt, session *Session, asked bool) (Agreement, error) {
	for range agreeAttempts {
		holds, stored, err := s.agreement(ctx, p.Client, session.Username)
		if err != nil {
			return Agreement{}, err
		}
		next, changed := s.agreed(holds, p, session, asked)
		if !changed {
			return holds, nil
		}
		next.seen = stored.seen // one that is void is replaced
		switch err := s.store.PutAgreement(ctx, next); {
		case err == nil:
			return next, nil
		case !errors.Is(err, ErrExists):
			return Agreement{}, storeFailed("store agreement", err)
		}
		asked = false // it was stored at this moment: what it allows now may be enough
	}
	return Agreement{}, storeFailed("store agreement", ErrExists)
}

// agreed returns the agreement after a code is issued under it, and whether it has to be stored. Scopes that
// the client has lost since leave it when it is stored, which bounds it.
func (s *Service) agreed(a Agreement, p *Prompt, session *Session, asked bool) (next Agreement, changed bool) {
	now := s.opts.Now().UTC().Truncate(time.Millisecond) // as MongoDB keeps it
	next = a
	if a.ID == "" {
		next = Agreement{ID: secret.ID(), Username: session.Username, ClientID: p.Client.ID}
		asked = true
	}
	if !asked && now.Sub(a.UsedAt) < agreementRefresh && subset(p.Scopes, a.Scopes) {
		return a, false
	}
	next.Scopes = nil
	for _, scope := range slices.Concat(a.Scopes, p.Scopes) {
		if slices.Contains(p.Client.Scopes, scope) && !slices.Contains(next.Scopes, scope) {
			next.Scopes = append(next.Scopes, scope)
		}
	}
	next.UsedAt, next.ExpiresAt = now, now.Add(max(agreementKept, s.opts.RefreshMaxAge))
	if asked {
		next.AgreedAt, next.ClientStamp, next.UserStamp = now, p.Client.Stamp, session.UserStamp
	}
	return next, true
}

// Allowed is what a user allows a client.
type Allowed struct {
	Agreement
	Client *clientcfg.Client
}

// Allowed returns what the user allows clients, ordered by client. Errors: *[Error].
func (s *Service) Allowed(ctx context.Context, username string) ([]Allowed, error) {
	list, err := s.store.AgreementsOf(ctx, username)
	if err != nil {
		return nil, storeFailed("read agreements", err)
	}
	var out []Allowed
	for _, a := range list {
		client, ok := s.opts.Clients.Client(a.ClientID)
		if !ok {
			continue
		}
		holds, err := s.holds(ctx, client, &a)
		if err != nil {
			return nil, err
		}
		if holds {
			out = append(out, Allowed{a, client})
		}
	}
	return out, nil
}

// FirstParty reports whether there is such a client and its users are not asked for their consent: it gets
// access again after they withdrew it.
func (s *Service) FirstParty(clientID string) bool {
	client, ok := s.opts.Clients.Client(clientID)
	return ok && client.FirstParty
}

// Withdraw ends what the user allows the client: it is not remembered, and the codes, refresh tokens and
// access tokens that came of it are worthless. Errors: [ErrNotFound], *[Error].
func (s *Service) Withdraw(ctx context.Context, username, clientID string) error {
	a, err := s.store.Agreement(ctx, username, clientID)
	switch {
	case errors.Is(err, ErrNotFound):
		return ErrNotFound
	case err != nil:
		return storeFailed("read agreement", err)
	}
	// In this order, and to the end: an agreement that is revoked and still there is void.
	ctx = context.WithoutCancel(ctx)
	until := s.opts.Now().Add(max(s.opts.RefreshMaxAge, s.opts.RefreshTokenLifetime) + s.opts.AccessTokenLifetime + pageLifetime + skew)
	if err := s.store.Revoke(ctx, agreementName(a.ID), until); err != nil {
		return storeFailed("revoke agreement", err)
	}
	if err := s.store.DeleteAgreement(ctx, &a); err != nil {
		return storeFailed("delete agreement", err)
	}
	s.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "consent withdrawn, its tokens are revoked", slog.String("client_id", clientID), s.opts.LogUser(username))
	return nil
}
