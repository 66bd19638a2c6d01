package mongo

import (
	"maps"
	"slices"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// TestFoldsThatInsertAtOnce: two instances fold a part of the trail for the first time, one up to a later
// entry. What it has found newer is not lost to what the other one inserts meanwhile.
func TestFoldsThatInsertAtOnce(t *testing.T) {
	s, other, proxy := throughProxy(t)
	changeTo(t, other, 7)
	proxy.Alter(mongotest.Collision(func() { // as far as that was the trail
		for version := int64(1); version <= 3; version++ {
			check.OK(t, foldOf(t, other, version))
		}
	}))
	check.OK(t, s.foldPolicies(t.Context()))
	isFoldedTo(t, s, 7)
	isFoldOf(t, s, 7)
}

// foldOf puts what one entry changes.
func foldOf(t *testing.T, s *Store, version int64) error {
	t.Helper()
	entries, err := s.policyEntries(t.Context(), version)
	check.OK(t, err)
	_, targets, err := latest(version-1, entries[:1])
	check.OK(t, err)
	return putPolicyTargets(t.Context(), s.policies, slices.Collect(maps.Values(targets)), "test")
}
