package grants

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

var agreementTable = store.Table{Name: "agreements", ByOwner: true}

// Agreement is a user's remembered consent to a client, as stored.
type Agreement struct {
	Username string
	ClientID string
	ID       string // random; prefix of the names of all families issued under this agreement
	Scopes   []string
	AgreedAt time.Time // when the user last agreed on a page
	UsedAt   time.Time // when a code was last issued under it, accurate to a day
	// ExpiresAt is when the agreement is forgotten. Each use moves it.
	ExpiresAt time.Time
	// ClientStamp and UserStamp are the stamps of the client and the user when the user agreed.
	ClientStamp secret.Stamp
	UserStamp   secret.Stamp
	seen        store.Seen // the state of the record when it was read
}

// RevocationNames returns the names under which the agreement may have been revoked.
func (a *Agreement) RevocationNames() []string { return []string{agreementName(a.ID)} }

// Revocation returns the name to record for revoking everything issued under the agreement, and
// until when the record matters. It assumes the longest possible lifetimes, so the caller need not
// know the servers' settings.
func (a *Agreement) Revocation(now time.Time) (name string, until time.Time) {
	return agreementName(a.ID), now.Add(longestRefresh + longestAccess + pageLifetime + skew)
}

type agreementValue struct {
	ID          string       `json:"id"`
	Scopes      []string     `json:"scopes,omitempty"`
	AgreedAt    time.Time    `json:"agreedAt"`
	UsedAt      time.Time    `json:"usedAt"`
	ClientStamp secret.Stamp `json:"clientStamp"`
	UserStamp   secret.Stamp `json:"userStamp"`
}

// agreementKey is the username, a space and the client ID. Usernames contain no spaces.
func agreementKey(username, clientID string) string { return username + " " + clientID }

func encodeAgreement(a *Agreement) (store.Record, error) {
	value, err := json.Marshal(agreementValue{a.ID, a.Scopes, a.AgreedAt.UTC(), a.UsedAt.UTC(), a.ClientStamp, a.UserStamp})
	return store.Record{Key: agreementKey(a.Username, a.ClientID), Value: value, Owner: a.Username, Expires: a.ExpiresAt}, err
}

func decodeAgreement(r *store.Record) (Agreement, error) {
	var v agreementValue
	err := store.Unmarshal(r, &v)
	if err == nil && v.ID == "" {
		err = errors.New("its id is missing")
	}
	username, clientID, _ := strings.Cut(r.Key, " ")
	return Agreement{
		Username: username, ClientID: clientID, ID: v.ID, Scopes: v.Scopes, AgreedAt: v.AgreedAt, UsedAt: v.UsedAt,
		ExpiresAt: r.Expires, ClientStamp: v.ClientStamp, UserStamp: v.UserStamp, seen: r.Seen(),
	}, err
}

// Agreement reads an agreement, which may have expired. Errors: [store.ErrNotFound].
func (r *Repository) Agreement(ctx context.Context, username, clientID string) (Agreement, error) {
	a, _, err := r.agreements.Get(ctx, agreementKey(username, clientID))
	return a, err
}

// AgreementsOf returns the agreements of a user, ordered by client.
func (r *Repository) AgreementsOf(ctx context.Context, username string) (list []Agreement, err error) {
	err = r.agreements.List(ctx, store.Query{Owner: username}, func(a Agreement, _ store.Seen) error {
		list = append(list, a)
		return nil
	})
	return list, err
}

// PutAgreement adds a new agreement, or replaces the one that was read. It returns
// [store.ErrConflict] if the stored agreement was replaced or removed since.
func (r *Repository) PutAgreement(ctx context.Context, a Agreement) error {
	_, err := r.agreements.Put(ctx, &a, a.seen)
	return err
}

// DeleteAgreement removes the agreement with that user, client and ID. It returns nil if there is no
// such agreement.
func (r *Repository) DeleteAgreement(ctx context.Context, a *Agreement) error {
	key, seen, id := agreementKey(a.Username, a.ClientID), a.seen, a.ID
	for {
		err := r.agreements.Backend.Delete(ctx, agreementTable, &seen, key)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		var stored Agreement
		if stored, seen, err = r.agreements.Get(ctx, key); errors.Is(err, store.ErrNotFound) || err == nil && stored.ID != id {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ForgetAgreements removes all agreements of a user, including unreadable ones.
func (r *Repository) ForgetAgreements(ctx context.Context, username string) error {
	var keys []string
	err := r.agreements.Backend.List(ctx, agreementTable, store.Query{Prefix: agreementKey(username, "")}, func(a store.Record) error {
		keys = append(keys, a.Key)
		return nil
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	return r.agreements.Backend.DeleteAll(ctx, agreementTable, keys...)
}

// An agreement is a user's remembered consent to a client. Every code that the user gives the
// client belongs to it, even if the consent page is shown each time, and the names of the code's
// families begin with the ID of the agreement. Withdrawing the agreement revokes the ID, and needs
// neither a clock nor a list of families.

const (
	// agreementKept is how long an unused agreement is remembered.
	agreementKept = 365 * 24 * time.Hour
	// agreementRefresh is how old the stored time of last use may get before it is updated.
	agreementRefresh = 24 * time.Hour
	// agreeAttempts bounds how often an agreement is read again because another writer changed it.
	agreeAttempts = 8
)

// newFamily returns the name of a new family under the agreement.
func (a *Agreement) newFamily() string { return a.ID + "." + secret.ID() }

// familyNames returns the names under which a family may be revoked: its own and its agreement's. A
// family of the password grant has no agreement. IDs contain no dots.
func familyNames(family string) []string {
	names := []string{familyName(family)}
	if agreement, _, ok := strings.Cut(family, "."); ok {
		names = append(names, agreementName(agreement))
	}
	return names
}

func agreementName(id string) string { return "agreement:" + id }

// agreement returns the user's valid agreement with the client as holds, or the zero value. stored
// is the record in the store, which may be void.
func (s *Service) agreement(ctx context.Context, client *clientcfg.Client, username string) (holds, stored Agreement, err error) {
	stored, err = s.store.Agreement(ctx, username, client.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
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

// holds reports whether the agreement is valid: it has not expired or been withdrawn, and it
// belongs to the current client and user, neither of them revoked since.
func (s *Service) holds(ctx context.Context, client *clientcfg.Client, a *Agreement) (bool, error) {
	if !s.opts.Now().Before(a.ExpiresAt) {
		return false, nil
	}
	if !client.Stamp.Accepts(a.ClientStamp) {
		return false, nil
	}
	if ok, err := s.signedIn(ctx, &Authorization{Username: a.Username, UserStamp: a.UserStamp}); !ok || err != nil {
		return false, err
	}
	withdrawn, err := s.store.Revoked(ctx, agreementName(a.ID))
	if err != nil {
		return false, storeFailed("read revocations", err)
	}
	return !withdrawn, nil
}

// agree returns the agreement of the session's user with the client, after storing that it allows
// the scopes of the prompt. asked is set if the user has just answered a consent page.
func (s *Service) agree(ctx context.Context, p *Prompt, session *accounts.Session, asked bool) (Agreement, error) {
	for range agreeAttempts {
		holds, stored, err := s.agreement(ctx, p.Client, session.Username)
		if err != nil {
			return Agreement{}, err
		}
		next, changed := s.agreed(holds, p, session, asked)
		if !changed {
			return holds, nil
		}
		next.seen = stored.seen // a void agreement is replaced
		switch err := s.store.PutAgreement(ctx, next); {
		case err == nil:
			return next, nil
		case !errors.Is(err, store.ErrConflict):
			return Agreement{}, storeFailed("store agreement", err)
		}
		asked = false // another request stored an agreement just now, which may already allow enough
	}
	return Agreement{}, storeFailed("store agreement", errors.New("it is changed too often"))
}

// agreed returns the agreement after issuing a code under it, and whether it has to be stored.
// Storing it drops scopes that the client has lost, which bounds its size.
func (s *Service) agreed(a Agreement, p *Prompt, session *accounts.Session, asked bool) (next Agreement, changed bool) {
	now := s.opts.Now().UTC().Truncate(time.Millisecond) // as MongoDB stores it
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

// Allowed is a user's agreement with a client, and the client.
type Allowed struct {
	Agreement
	Client *clientcfg.Client
}

// Allowed returns the user's valid agreements, ordered by client. Errors: *[Error].
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

// FirstParty reports whether the client exists and its users are not asked for consent. Such a
// client gets access again after a user withdraws it.
func (s *Service) FirstParty(clientID string) bool {
	client, ok := s.opts.Clients.Client(clientID)
	return ok && client.FirstParty
}

// Withdraw ends a user's agreement with a client. The consent is forgotten, and all codes, refresh
// tokens and access tokens issued under it become invalid. Errors: [store.ErrNotFound], *[Error].
func (s *Service) Withdraw(ctx context.Context, username, clientID string) error {
	a, err := s.store.Agreement(ctx, username, clientID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return err
	case err != nil:
		return storeFailed("read agreement", err)
	}
	// Keep this order, and finish even if the request is canceled: a revoked agreement that still
	// exists is void.
	ctx = context.WithoutCancel(ctx)
	until := s.opts.Now().Add(max(s.opts.RefreshMaxAge, s.opts.RefreshTokenLifetime) + s.opts.AccessTokenLifetime + pageLifetime + skew)
	if err := s.store.Revoke(ctx, agreementName(a.ID), until); err != nil {
		return storeFailed("revoke agreement", err)
	}
	if err := s.store.DeleteAgreement(ctx, &a); err != nil {
		return storeFailed("delete agreement", err)
	}
	s.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "consent withdrawn; tokens revoked", slog.String("client_id", clientID), s.opts.LogUser(username))
	return nil
}
