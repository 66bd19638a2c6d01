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

// Errors for missing sessions and sign-ins of a user.
var (
	ErrNoSession = errors.New("the user has no such session")
	ErrNoFamily  = errors.New("the user has no such family")
)

// Session is a browser session of a user.
type Session struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	key       string
}

// Sessions are a user's signed-in browsers.
type Sessions struct {
	Username string    `json:"username"`
	Sessions []Session `json:"sessions"`
}

// Families are a user's sign-ins that can be refreshed.
type Families struct {
	Username string   `json:"username"`
	Families []Family `json:"families"`
}

// Family is a refreshable sign-in of a user through a client.
type Family struct {
	ID        string    `json:"id"`
	ClientID  string    `json:"client_id"`
	Scope     []string  `json:"scopes,omitempty"`
	AuthTime  time.Time `json:"auth_time"`
	Refreshed time.Time `json:"refreshed_at"` // when the newest refresh token was issued
	ExpiresAt time.Time `json:"expires_at"`
	record    grants.Grant
}

// MostFamilies is how many families of a user are listed. Any number can be revoked at once.
const MostFamilies = 1000

// errEnough stops reading families.
var errEnough = errors.New("no more needed")

// Sessions returns a user's valid sessions, newest first. Errors: [store.ErrNotFound].
func (r *Service) Sessions(ctx context.Context, typed string) (all Sessions, err error) {
	u, err := r.user(ctx, typed)
	if err != nil {
		return all, err
	}
	stored, err := r.grants.SessionsOf(ctx, u.Name)
	if err != nil {
		return all, fmt.Errorf("user %q: %w", u.Name, err)
	}
	now := r.o.Now()
	all = Sessions{u.Name, []Session{}}
	for _, s := range stored {
		if now.Before(s.ExpiresAt) && u.Stamp.Accepts(s.UserStamp) {
			all.Sessions = append(all.Sessions, Session{sessionID(s.Key), s.CreatedAt, s.ExpiresAt, s.Key})
		}
	}
	return all, nil
}

// sessionID returns an ID for a session that does not reveal its store key.
func sessionID(key string) string { return secret.DigestOf("session " + key).String()[:32] }

// PartlyError is returned if only some of a user's sign-ins were ended.
type PartlyError struct {
	Ended int
	Err   error
}

// Error implements error.
func (e *PartlyError) Error() string {
	return fmt.Sprintf("ended %d, and then failed: %v", e.Ended, e.Err)
}

// Unwrap returns why the others were not ended.
func (e *PartlyError) Unwrap() error { return e.Err }

// partly wraps err in a *[PartlyError] if some sign-ins were ended before it.
func partly(ended int, err error) error {
	if err == nil || ended == 0 {
		return err
	}
	return &PartlyError{ended, err}
}

// EndSessions ends the session with that ID, or all sessions of a user if id is empty, and returns
// how many it ended. Tokens issued in them stay valid. Errors: [ErrNoSession],
// [store.ErrNotFound], *[PartlyError].
func (r *Service) EndSessions(ctx context.Context, typed, id string) (int, error) {
	all, err := r.Sessions(ctx, typed)
	if err != nil {
		return 0, err
	}
	user := all.Username
	list := slices.DeleteFunc(all.Sessions, func(s Session) bool { return id != "" && s.ID != id })
	if id != "" && len(list) == 0 {
		return 0, ErrNoSession
	}
	for i, s := range list {
		err := r.Record(ctx, "end_session", clientcfg.UserTarget(user), map[string]string{"session": s.ID}, nil, func() error {
			return r.grants.DeleteSession(ctx, s.key)
		})
		if err != nil {
			return i, partly(i, fmt.Errorf("user %q: %w", user, err))
		}
	}
	return len(list), nil
}

// Families returns a user's refreshable sign-ins, most recently refreshed first: at most
// [MostFamilies], without revoked ones. Errors: [store.ErrNotFound].
func (r *Service) Families(ctx context.Context, typed string) (all Families, err error) {
	list := []Family{}
	all.Username, err = r.families(ctx, typed, func(some []Family) error {
		for i := range some {
			if revoked, err := r.grants.Revoked(ctx, some[i].record.RevocationNames()...); err != nil {
				return err
			} else if revoked {
				continue
			}
			if list = append(list, some[i]); len(list) == MostFamilies {
				return errEnough
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b Family) int { return b.Refreshed.Compare(a.Refreshed) })
	all.Families = list
	return all, err
}

// families calls each with a user's families, in batches, until each returns an error. It skips
// families that have expired or ended with their client. [errEnough] is not returned. The families
// may be revoked already, and each may revoke them.
func (r *Service) families(ctx context.Context, typed string, each func(some []Family) error) (user string, err error) {
	u, err := r.user(ctx, typed)
	if err != nil {
		return "", err
	}
	now, clients := r.o.Now(), knownClients{}
	err = r.grants.FamiliesOf(ctx, u.Name, func(stored []grants.Grant) error {
		some := make([]Family, 0, len(stored))
		for _, f := range stored {
			if !now.Before(f.ExpiresAt) || !u.Stamp.Accepts(f.UserStamp) {
				continue
			}
			accepted, err := r.accepted(ctx, f.ClientID, f.ClientStamp, clients)
			if err != nil {
				return err
			}
			if accepted {
				some = append(some, Family{f.Family, f.ClientID, f.Scopes, f.AuthTime, f.IssuedAt, f.ExpiresAt, f})
			}
		}
		return each(some)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return u.Name, fmt.Errorf("user %q: %w", u.Name, err)
	}
	return u.Name, nil
}

// knownClients caches clients by ID. Nil means that the client does not exist or is unreadable.
type knownClients map[string]*clientcfg.Client

// accepted reports whether the client still exists and accepts the stamp, which means that it was
// not revoked since.
func (r *Service) accepted(ctx context.Context, clientID string, stamp secret.Stamp, clients knownClients) (bool, error) {
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
	return c != nil && c.Stamp.Accepts(stamp), nil
}
