package registry

import (
	"context"
	"errors"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/strict/fielderr"
)

// Errors about the secrets of a client.
var (
	// ErrPublic is returned for an operation on the secret of a public client.
	ErrPublic = errors.New("a public client has no secret")
	// ErrLastSecret means that the client would have no secret left.
	ErrLastSecret = errors.New("this is the newest secret of the client: first add another one, or delete the client")
	// ErrNoSecret means that the client has no such secret.
	ErrNoSecret = errors.New("the client has no such secret")
)

// NewSecret says how a client gets another secret.
type NewSecret struct {
	Overlap ratelimit.Duration `json:"overlap,omitzero"` // how long the former secret stays valid, such as 24h; at most 720h
	Revoke  bool               `json:"revoke,omitempty"` // invalidate everything issued until now
}

// MaxOverlap is the longest overlap of two secrets.
const MaxOverlap = 30 * 24 * time.Hour

// validate returns [fielderr.Errors] for a secret that contradicts itself.
func (n NewSecret) validate() error {
	var errs fielderr.Errors
	switch {
	case n.Overlap < 0 || n.Overlap.Std() > MaxOverlap:
		errs.Add("overlap", "must be from 0 to %d days", MaxOverlap/(24*time.Hour))
	case n.Overlap > 0 && n.Revoke:
		errs.Add("overlap", "the old secret cannot be revoked and stay valid")
	}
	return errs.Err()
}

// Secret is a client's secret as operators see it.
type Secret struct {
	ID      string    `json:"id"`
	Current bool      `json:"current"`              // the newest secret, which has no end
	Used    time.Time `json:"used_at,omitzero"`     // the minute of its last use; absent: unused
	Until   time.Time `json:"valid_until,omitzero"` // end of the former secret
}

// Secrets returns a client's valid secrets at a time, newest first.
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

// SecretID returns an ID for a secret: a part of a digest of its digest, which reveals nothing of
// the stored digest.
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

// AddSecret gives a confidential client a new secret. n says what happens to the previous one. It
// returns the client and the new secret, which is stored only as a digest. Instances follow when
// they refresh their clients, within two seconds. At most two secrets are valid: if a secret from an
// earlier rotation is still valid, it ends. Errors: [fielderr.Errors], [ErrPublic],
// [clientcfg.ErrNotFound].
func (r *Service) AddSecret(ctx context.Context, id string, n NewSecret) (c clientcfg.Client, shown string, err error) {
	if err := n.validate(); err != nil {
		return c, "", err
	}
	shown = secret.New()
	c, err = r.changeClient(ctx, id, func(c *clientcfg.Client, now time.Time) (change, error) {
		if c.Public {
			return change{}, ErrPublic
		}
		ch := change{action: "add_secret", before: secretsOf(c, now)}
		former := clientcfg.FormerSecret{Digest: c.SecretDigest, Until: now.UTC().Add(n.Overlap.Std()).Truncate(time.Second), Used: c.SecretUsed}
		c.SecretDigest, c.SecretUsed, c.Former = secret.DigestOf(shown), time.Time{}, clientcfg.FormerSecret{}
		if n.Overlap > 0 {
			c.Former = former
		}
		if n.Revoke {
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

// RetireSecret ends a client's secret early. The newest secret cannot be retired, because the
// client would have no secret left. Errors: [ErrLastSecret], [ErrNoSecret],
// [clientcfg.ErrNotFound].
func (r *Service) RetireSecret(ctx context.Context, id, secretID string) error {
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
