package grants

import "time"

// The longest configurable lifetimes, of an access token and of a refreshable sign-in.
const (
	longestAccess  = 30 * 24 * time.Hour
	longestRefresh = 10 * 365 * 24 * time.Hour
)

// RevocationNames returns the names under which the family may have been revoked.
func (f *Family) RevocationNames() []string { return familyNames(f.Family) }

// Revocation returns the name to record for revoking the family, and until when the record matters.
// Its refresh token may be exchanged at this moment, and the resulting access token lives for a
// while.
func (f *Family) Revocation(now time.Time) (name string, until time.Time) {
	last := now.Add(f.ExpiresAt.Sub(f.IssuedAt))
	if last.Before(f.ExpiresAt) {
		last = f.ExpiresAt
	}
	return familyName(f.Family), last.Add(longestAccess + skew)
}

// RevocationNames returns the names under which the agreement may have been revoked.
func (a *Agreement) RevocationNames() []string { return []string{agreementName(a.ID)} }

// Revocation returns the name to record for revoking everything issued under the agreement, and
// until when the record matters. It assumes the longest possible lifetimes, so the caller need not
// know the servers' settings.
func (a *Agreement) Revocation(now time.Time) (name string, until time.Time) {
	return agreementName(a.ID), now.Add(longestRefresh + longestAccess + pageLifetime + skew)
}
