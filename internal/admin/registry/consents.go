package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store"
)

// ErrNoConsent is returned if the user has no consent for the client.
var ErrNoConsent = errors.New("the user has not granted the client any access")

// Consent is a user's consent to a client.
type Consent struct {
	ClientID  string    `json:"client_id"`
	Scopes    []string  `json:"scopes"`
	AgreedAt  time.Time `json:"agreed_at"`  // when the user last agreed on a page
	UsedAt    time.Time `json:"used_at"`    // when a code was last issued under it, accurate to a day
	ExpiresAt time.Time `json:"expires_at"` // when it ends unless it is used before
}

// Consents are a user's consents to clients.
type Consents struct {
	Username string    `json:"username"`
	Consents []Consent `json:"consents"`
}

// Consents returns a user's valid consents, ordered by client. Errors: [store.ErrNotFound].
func (r *Service) Consents(ctx context.Context, typed string) (all Consents, err error) {
	u, err := r.user(ctx, typed)
	if err != nil {
		return all, err
	}
	stored, err := r.grants.AgreementsOf(ctx, u.Name)
	now, list, clients := r.o.Now(), []Consent{}, knownClients{}
	for i := 0; i < len(stored) && err == nil; i++ {
		a := &stored[i]
		if !now.Before(a.ExpiresAt) || !u.Stamp.Accepts(a.UserStamp) {
			continue
		}
		var good, revoked bool
		if good, err = r.accepted(ctx, a.ClientID, a.ClientStamp, clients); good {
			revoked, err = r.grants.Revoked(ctx, a.RevocationNames()...)
		}
		if good && !revoked && err == nil {
			list = append(list, Consent{a.ClientID, append([]string{}, a.Scopes...), a.AgreedAt, a.UsedAt, a.ExpiresAt})
		}
	}
	if err != nil {
		return all, fmt.Errorf("user %q: %w", u.Name, err)
	}
	return Consents{u.Name, list}, nil
}

// WithdrawConsent ends a user's consent to a client and everything issued under it, on every
// instance at once. Errors: [ErrNoConsent], [store.ErrNotFound].
func (r *Service) WithdrawConsent(ctx context.Context, typed, clientID string) error {
	u, err := r.user(ctx, typed)
	if err != nil {
		return err
	}
	a, err := r.grants.Agreement(ctx, u.Name, clientID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrNoConsent
	case err != nil:
		return fmt.Errorf("user %q: %w", u.Name, err)
	}
	name, until := a.Revocation(r.o.Now())
	err = r.Record(ctx, "withdraw_consent", clientcfg.UserTarget(u.Name), map[string]string{"client_id": clientID}, nil, func() error {
		ctx := context.WithoutCancel(ctx) // finish even if canceled: a revoked consent that still exists is void
		if err := r.grants.Revoke(ctx, name, until); err != nil {
			return err
		}
		return r.grants.DeleteAgreement(ctx, &a)
	})
	if err != nil {
		return fmt.Errorf("user %q: %w", u.Name, err)
	}
	return nil
}
