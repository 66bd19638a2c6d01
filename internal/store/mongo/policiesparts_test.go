package mongo

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// documents returns all of a collection.
func documents(t *testing.T, c *mongo.Collection) (docs []bson.Raw) {
	t.Helper()
	cursor, err := c.Find(t.Context(), bson.D{})
	check.OK(t, err)
	check.OK(t, cursor.All(t.Context(), &docs))
	return docs
}

// restoreCollection replaces all of a collection.
func restoreCollection(t *testing.T, c *mongo.Collection, docs []bson.Raw) {
	t.Helper()
	_, err := c.DeleteMany(t.Context(), bson.D{})
	check.OK(t, err)
	if len(docs) > 0 {
		_, err = c.InsertMany(t.Context(), docs)
		check.OK(t, err)
	}
}

// TestPartOfABackup: what docs/operating-mongodb.md says of a restoration of the trail without its fold, or
// of the fold without the trail.
func TestPartOfABackup(t *testing.T) {
	for _, tt := range []struct {
		name    string
		restore func(t *testing.T, s *Store, audit, policies []bson.Raw)
		version int64 // of the newest entry, as it is seen
		inForce int64 // up to which changes are in force
	}{
		{"an older fold", func(t *testing.T, s *Store, _, policies []bson.Raw) {
			t.Helper()
			restoreCollection(t, s.policies, policies)
		}, 70, 70},
		{"no fold", func(t *testing.T, s *Store, _, _ []bson.Raw) {
			t.Helper()
			restoreCollection(t, s.policies, nil)
		}, 70, 70},
		{"an older trail", func(t *testing.T, s *Store, audit, _ []bson.Raw) {
			t.Helper()
			restoreCollection(t, s.audit, audit)
		}, 40, 64},
		{"no trail", func(t *testing.T, s *Store, _, _ []bson.Raw) {
			t.Helper()
			restoreCollection(t, s.audit, nil)
		}, 64, 64},
		{"both", func(t *testing.T, s *Store, audit, policies []bson.Raw) {
			t.Helper()
			restoreCollection(t, s.audit, audit)
			restoreCollection(t, s.policies, policies)
		}, 40, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, s, _ := throughProxy(t)
			changeTo(t, s, 40)
			isFoldedTo(t, s, 32)
			audit, policies := documents(t, s.audit), documents(t, s.policies)
			changeTo(t, s, 70)
			isFoldedTo(t, s, 64)
			tt.restore(t, s, audit, policies)
			newest, err := s.PolicyVersion(t.Context())
			check.OK(t, err)
			check.Equal(t, "version", newest.Number, tt.version)
			isFoldOf(t, s, tt.inForce)
			if err := change(t.Context(), s, tt.inForce); !errors.Is(err, clientcfg.ErrPolicyConflict) {
				t.Errorf("a change under a number that is in force: %v", err)
			}
			check.OK(t, change(t.Context(), s, tt.inForce+1))
			isFoldOf(t, s, tt.inForce+1)
		})
	}
}
