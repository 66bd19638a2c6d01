package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
)

// Errors of what a user is not signed in with.
var (
	ErrNoSession = errors.New("the user has no such session")
	ErrNoFamily  = errors.New("the user has no such sign-in that can be refreshed")
)

// Session is a browser that a user is signed in with.
type Session struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	digest    secret.Digest
}

// Family is a sign-in of a user through a client that can be refreshed.
type Family struct {
	ID        string    `json:"id"`
	ClientID  string    `json:"client_id"`
	Scope     []string  `json:"scopes,omitempty"`
	AuthTime  time.Time `json:"auth_time"`
	Refreshed time.Time `json:"refreshed_at"` // when the newest refresh token was issued
	ExpiresAt time.Time `json:"expires_at"`
	record    grants.Family
}

// MostFamilies is how many families of a user are listed. Any number is revoked at once.
const MostFamilies = 1000

// errEnough ends a look at families.
var errEnough = errors.New("no more are needed")

// Sessions returns the sessions of a user that count, the newest first. Errors: [grants.ErrNotFound].
func (r *Registry) Sessions(ctx context.Context, typed string) (user string, list []Session, err error) {
	u, err := r.user(ctx, typed)
	if err != nil {
		return "", nil, err
	}
	stored, err := r.o.Store.SessionsOf(ctx, u.Name)
	if err != nil {
		return u.Name, nil, fmt.Errorf("user %q: %w", u.Name, err)
	}
	now, list := r.o.Now(), []Session{}
	for _, s := range stored {
		if now.Before(s.ExpiresAt) && u.Accepts(s.UserStamp, s.CreatedAt) {
			list = append(list, Session{sessionID(s.Digest), s.CreatedAt, s.ExpiresAt, s.Digest})
		}
	}
	return u.Name, list, nil
}

// sessionID names a session without showing what it is stored under.
func sessionID(d secret.Digest) string { return secret.DigestOf("session " + d.String()).String()[:32] }

// EndSessions ends the session of that ID, or all of a user if it is empty, and returns how many. What
// was issued in them stays. Errors: [ErrNoSession], [grants.ErrNotFound].
func (r *Registry) EndSessions(ctx context.Context, typed, id string) (int, error) {
	user, list, err := r.Sessions(ctx, typed)
	if err != nil {
		return 0, err
	}
	list = slices.DeleteFunc(list, func(s Session) bool { return id != "" && s.ID != id })
	if id != "" && len(list) == 0 {
		return 0, ErrNoSession
	}
	for i, s := range list {
		ch := change{"end_session", clientcfg.UserTarget(user), map[string]string{"session": s.ID}, nil}
		if err := r.record(ctx, ch, func() error { return r.o.Store.DeleteSession(ctx, s.digest) }); err != nil {
			return i, fmt.Errorf("user %q: %w", user, err)
		}
	}
	return len(list), nil
}

// Families returns the sign-ins of a user that can be refreshed, those refreshed last first: at most
// [MostFamilies], without those that were revoked. Errors: [grants.ErrNotFound].
func (r *Registry) Families(ctx context.Context, typed string) (user string, list []Family, err error) {
	list = []Family{}
	user, err = r.eachFamily(ctx, typed, func(f *Family) error {
		if list = append(list, *f); len(list) == MostFamilies {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return user, nil, err
	}
	slices.SortFunc(list, func(a, b Family) int { return b.Refreshed.Compare(a.Refreshed) })
	return user, list, nil
}

// eachFamily calls each with every family of a user that counts, however many have ended, until that
// fails. [errEnough] is no error. each may revoke the family.
func (r *Registry) eachFamily(ctx context.Context, typed string, each func(f *Family) error) (user string, err error) {
	u, err := r.user(ctx, typed)
	if err != nil {
		return "", err
	}
	now, clients := r.o.Now(), knownClients{}
	err = r.o.Store.FamiliesOf(ctx, u.Name, func(some []grants.Family) error {
		for _, f := range some {
			if !now.Before(f.ExpiresAt) || !u.Accepts(f.UserStamp, f.AuthTime) {
				continue
			}
			good, err := r.good(ctx, f.ClientID, &f, clients)
			if good {
				err = each(&Family{f.Family, f.ClientID, f.Scopes, f.AuthTime, f.IssuedAt, f.ExpiresAt, f})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return u.Name, fmt.Errorf("user %q: %w", u.Name, err)
	}
	return u.Name, nil
}

// knownClients are clients that were read already, by ID; nil: it is not there, or not readable.
type knownClients map[string]*clientcfg.Client

// revocable is a family or an agreement.
type revocable interface {
	AcceptedBy(c *clientcfg.Client) bool
	RevocationNames() []string
}

// good reports whether neither what a client has of a user nor that client was revoked.
func (r *Registry) good(ctx context.Context, clientID string, what revocable, clients knownClients) (bool, error) {
	c, known := clients[clientID]
	if !known {
		stored, err := r.FindClient(ctx, clientID)
		switch {
		case err == nil:
			c = &stored
		case !errors.Is(err, clientcfg.ErrNotFound) && !errors.Is(err, clientcfg.ErrUnreadableClient):
			return false, err
		}
		clients[clientID] = c
	}
	if c == nil || !what.AcceptedBy(c) {
		return false, nil
	}
	revoked, err := r.o.Store.Revoked(ctx, what.RevocationNames()...)
	return !revoked && err == nil, err
}

// RevokeFamilies revokes the family of that ID, or all of a user if it is empty: refresh tokens and
// access tokens, at once on every instance. It returns how many. Errors: [ErrNoFamily],
// [grants.ErrNotFound].
func (r *Registry) RevokeFamilies(ctx context.Context, typed, id string) (revoked int, err error) {
	_, err = r.eachFamily(ctx, typed, func(f *Family) error {
		if id != "" && f.ID != id {
			return nil
		}
		if err := r.revokeFamily(ctx, f); err != nil {
			return err
		}
		if revoked++; id != "" {
			return errEnough
		}
		return nil
	})
	if err == nil && id != "" && revoked == 0 {
		err = ErrNoFamily
	}
	return revoked, err
}

func (r *Registry) revokeFamily(ctx context.Context, f *Family) error {
	ch := change{"revoke_family", clientcfg.UserTarget(f.record.Username), map[string]string{"family": f.ID, "client_id": f.ClientID}, nil}
	name, until := f.record.Revocation(r.o.Now())
	return r.record(ctx, ch, func() error { return r.o.Store.Revoke(ctx, name, until) })
}
