package grants

import (
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Accepts reports whether what came of a sign-in at that time, and carries the stamp, is of this user
// and not from before the last revocation.
func (u *User) Accepts(stamp secret.Stamp, at time.Time) bool {
	return u.Stamp.Accepts(stamp, !at.Before(since(u.CreatedAt, u.NotBefore)))
}

// AcceptedBy reports whether the family was issued to this client and not before its last revocation.
func (f *Family) AcceptedBy(c *clientcfg.Client) bool {
	return c.Stamp.Accepts(f.ClientStamp, !f.IssuedAt.Before(since(c.CreatedAt, c.NotBefore)))
}

// AcceptedBy reports whether the user agreed with this client, and not before its last revocation.
func (a *Agreement) AcceptedBy(c *clientcfg.Client) bool {
	return c.Stamp.Accepts(a.ClientStamp, !a.AgreedAt.Before(since(c.CreatedAt, c.NotBefore)))
}

// The longest lifetimes that can be configured: of an access token, and of what can be refreshed.
const (
	longestAccess  = 30 * 24 * time.Hour
	longestRefresh = 10 * 365 * 24 * time.Hour
)

// RevocationNames are the names of which any may have been revoked to end the family.
func (f *Family) RevocationNames() []string { return familyNames(f.Family) }

// Revocation returns what has to be recorded to revoke the family, and until when that can matter: its
// refresh token may be exchanged at this moment, and the access token of it lives for a while.
func (f *Family) Revocation(now time.Time) (name string, until time.Time) {
	last := now.Add(f.ExpiresAt.Sub(f.IssuedAt))
	if last.Before(f.ExpiresAt) {
		last = f.ExpiresAt
	}
	return familyName(f.Family), last.Add(longestAccess + skew)
}

// RevocationNames are the names of which any may have been revoked to end the agreement.
func (a *Agreement) RevocationNames() []string { return []string{agreementName(a.ID)} }

// Revocation returns what has to be recorded to end what came of the agreement, and until when that can
// matter: whatever lifetimes the servers have, which the caller need not have read.
func (a *Agreement) Revocation(now time.Time) (name string, until time.Time) {
	return agreementName(a.ID), now.Add(longestRefresh + longestAccess + pageLifetime + skew)
}
