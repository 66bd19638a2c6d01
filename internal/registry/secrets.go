package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Errors about the secrets of a client.
var (
	// ErrPublic is returned when a secret is asked for a client that has none.
	ErrPublic = errors.New("a public client has no secret")
	// ErrLastSecret: the client would have no secret.
	ErrLastSecret = errors.New("this is the newest secret of the client: add another one first, or delete the client")
	// ErrNoSecret: the client has no such secret.
	ErrNoSecret = errors.New("the client has no such secret")
)

// Rotation is what becomes of a secret that is replaced, and of what was issued under it.
type Rotation struct {
	Revoke  bool          // as [Registry.RevokeClient] does
	Overlap time.Duration // the old secret stays valid for so long; 0: it ends at once
}

// MaxOverlap is the longest overlap of two secrets.
const MaxOverlap = 30 * 24 * time.Hour

// validate returns an *[InvalidError] for a rotation that contradicts itself.
func (r Rotation) validate() error {
	switch {
	case r.Overlap < 0 || r.Overlap > MaxOverlap:
		return &InvalidError{fmt.Errorf("overlap: needs to be from 0 to %d days", MaxOverlap/(24*time.Hour))}
	case r.Overlap > 0 && r.Revoke:
		return &InvalidError{errors.New("overlap: the old secret cannot both be revoked and stay valid")}
	}
	return nil
}

// Secret is a secret of a client as operators see it.
type Secret struct {
	ID      string    `json:"id"`
	Current bool      `json:"current"`              // the newest, which has no end
	Used    time.Time `json:"used_at,omitzero"`     // the minute of its last use; none: it was not used
	Until   time.Time `json:"valid_until,omitzero"` // of the one before
}

// Secrets returns those of a client that are valid at a time, the newest first.
func Secrets(c *clientcfg.Client, now time.Time) []Secret {
	list := []Secret{}
	if !c.SecretDigest.IsZero() {
		list = append(list, Secret{ID: SecretID(c.ID, c.SecretDigest), Current: true, Used: c.SecretUsed})
	}
	if !c.Former.Digest.IsZero() && now.Before(c.Former.Until) {
		list = append(list, Secret{ID: SecretID(c.ID, c.Former.Digest), Used: c.Former.Used, Until: c.Former.Until})
	}
	return list
}

// SecretID names a secret: a part of a digest of its digest, so that nothing of what is stored is shown.
func SecretID(clientID string, d secret.Digest) string {
	return secret.DigestOf("secret of " + clientID + " " + d.String()).String()[:16]
}

func secretsOf(c *clientcfg.Client, now time.Time) any {
	ids := []string{}
	for _, s := range Secrets(c, now) {
		ids = append(ids, s.ID)
	}
	return map[string]any{"client_id": c.ID, "secrets": ids}
}

// AddSecret gives a confidential client a new secret; what becomes of the one before is the rotation. It
// returns the client and the new secret, which is stored as a digest only. Instances follow as soon as
// they have refreshed their clients, within two seconds. At most two secrets are valid: one that still
// was from an earlier rotation ends. Errors: *[InvalidError], [ErrPublic], [clientcfg.ErrNotFound].
func (r *Registry) AddSecret(ctx context.Context, id string, rotation Rotation) (c clientcfg.Client, shown string, err error) {
	if err := rotation.validate(); err != nil {
		return c, "", err
	}
	shown = secret.New()
	c, err = r.changeClient(ctx, id, func(c *clientcfg.Client, now time.Time) (change, error) {
		if c.Public {
			return change{}, ErrPublic
		}
		ch := change{action: "add_secret", before: secretsOf(c, now)}
		former := clientcfg.FormerSecret{Digest: c.SecretDigest, Until: now.UTC().Add(rotation.Overlap).Truncate(time.Second), Used: c.SecretUsed}
		c.SecretDigest, c.SecretUsed, c.Former = secret.DigestOf(shown), time.Time{}, clientcfg.FormerSecret{}
		if rotation.Overlap > 0 {
			c.Former = former
		}
		if rotation.Revoke {
			c.Stamp = c.Stamp.Revoked()
		}
		ch.after = secretsOf(c, now)
		return ch, nil
	})
	if err != nil {
		return clientcfg.Client{}, "", err
	}
	return c, shown, nil
}

// RetireSecret ends a secret of a client before its time. The newest cannot be: the client would have
// none. Errors: [ErrLastSecret], [ErrNoSecret], [clientcfg.ErrNotFound].
func (r *Registry) RetireSecret(ctx context.Context, id, secretID string) error {
	_, err := r.changeClient(ctx, id, func(c *clientcfg.Client, now time.Time) (change, error) {
		for _, s := range Secrets(c, now) {
			if s.ID != secretID {
				continue
			}
			if s.Current {
				return change{}, ErrLastSecret
			}
			ch := change{action: "retire_secret", before: secretsOf(c, now)}
			c.Former = clientcfg.FormerSecret{}
			ch.after = secretsOf(c, now)
			return ch, nil
		}
		return change{}, ErrNoSecret
	})
	return err
}

// Secrets returns those of a client that are valid, the newest first. Errors: [clientcfg.ErrNotFound].
func (r *Registry) Secrets(ctx context.Context, id string) ([]Secret, error) {
	c, err := r.FindClient(ctx, id)
	if err != nil {
		return nil, err
	}
	return Secrets(&c, r.o.Now()), nil
}
