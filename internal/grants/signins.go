package grants

import "time"

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
