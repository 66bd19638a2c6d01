package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// strays are documents that an editor may have put into a collection whose _ids are whole numbers. They
// sort before and after all numbers, and among them.
func strays() []bson.D {
	note := bson.E{Key: "note", Value: "by hand"}
	at, old := bson.E{Key: "at", Value: time.Now()}, bson.E{Key: "at", Value: time.Unix(0, 0)}
	return []bson.D{
		{note}, // with an ObjectId
		{{Key: "_id", Value: bson.NewObjectID()}, at, {Key: "open", Value: true}},
		{{Key: "_id", Value: nil}, old, {Key: "open", Value: true}},
		{{Key: "_id", Value: "3"}, note, old},
		{{Key: "_id", Value: bson.D{{Key: "n", Value: 3}}}, note},
		{{Key: "_id", Value: true}, at},
		{{Key: "_id", Value: time.Now()}, at},
		{{Key: "_id", Value: -1}, note, at, {Key: "open", Value: true}},
		{{Key: "_id", Value: 2.5}, note},
		{{Key: "_id", Value: 1e18 * 100}, note, at},
	}
}

func putStrays(t *testing.T, s *Store, collection string) {
	t.Helper()
	for _, doc := range strays() {
		_, err := s.db.Collection(collection).InsertOne(t.Context(), doc, options.InsertOne().SetBypassDocumentValidation(true))
		check.OK(t, err)
	}
}

// TestStraysInTheTrail: no change is refused for them, nothing else is unreadable, and the sweep removes what is old.
func TestStraysInTheTrail(t *testing.T) {
	for _, before := range []int{0, 5} { // entries that are there before them
		_, s, _ := throughProxy(t)
		changeTo(t, s, int64(before))
		runs, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
		check.OK(t, err)
		putStrays(t, s, "audit")
		check.OK(t, runs.Refresh(t.Context()))
		changeTo(t, s, 6)
		starts, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
		check.OK(t, err)
		for _, p := range []*clientcfg.PolicySource{runs, starts} {
			check.OK(t, p.Refresh(t.Context()))
			check.Equal(t, "version", p.Snapshot().Version(), 6)
			check.Equal(t, "status", p.Status().Err, nil)
		}
		entries, err := s.Audit(t.Context(), clientcfg.AuditQuery{})
		check.OK(t, err)
		readable := 0
		for i := range entries {
			if entries[i].Err == nil {
				readable++
			}
		}
		check.Equal(t, "readable entries", readable, 6)
		_, err = s.SweepAudit(t.Context(), time.Now().Add(time.Hour), time.Now().Add(time.Hour))
		check.OK(t, err)
		changeTo(t, s, 7)
		check.OK(t, starts.Refresh(t.Context()))
		check.Equal(t, "version after the sweep", starts.Snapshot().Version(), 7)
	}
}

// TestDamagedMarker: it says which document of the database is meant, and what is wrong with it.
func TestDamagedMarker(t *testing.T) {
	for _, set := range []bson.E{{Key: "folded", Value: "seven"}, {Key: "version", Value: "x"}} {
		_, s, _ := throughProxy(t)
		changeTo(t, s, 3)
		setFields(t, s, "policies", "current", bson.D{set})
		_, err := s.PolicyState(t.Context())
		check.ErrorSays(t, err, set.Key+" is of type string")
		check.ErrorSays(t, err, `in the document "current" of the collection policies`)
	}
}
