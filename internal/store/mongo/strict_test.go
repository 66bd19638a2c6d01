package mongo

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/syncer"
)

// TestServerObeysOrdered checks the server that the tests run on: where it
// ignored `ordered`, a bulk that is ordered by mistake would lose no count here
// and lose many in production.
func TestServerObeysOrdered(t *testing.T) {
	uri, database := mongotest.Database(t)
	bulk := func(ordered bool) (counted int64) {
		c := mongotest.Connect(t, uri).Database(database).Collection("scratch")
		if err := c.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 2}, {Key: "version", Value: 7}}); err != nil {
			t.Fatal(err)
		}
		models := make([]mongo.WriteModel, 4)
		for id := range models {
			models[id] = mongo.NewUpdateOneModel().SetUpsert(true).
				SetFilter(bson.D{{Key: "_id", Value: id}, {Key: "version", Value: 0}}).
				SetUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "count", Value: 1}}}})
		}
		_, err := c.BulkWrite(t.Context(), models, options.BulkWrite().SetOrdered(ordered))
		var failed mongo.BulkWriteException
		if !errors.As(err, &failed) || len(failed.WriteErrors) != 1 || failed.WriteErrors[0].Index != 2 || failed.WriteErrors[0].Code != duplicateKey {
			t.Fatalf("ordered %t: %v", ordered, err)
		}
		counted, err = c.CountDocuments(t.Context(), bson.D{{Key: "count", Value: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return counted
	}
	if n := bulk(true); n != 2 {
		t.Errorf("an ordered bulk with an error at index 2 applied %d of 4 writes, want 2", n)
	}
	if n := bulk(false); n != 3 {
		t.Errorf("an unordered bulk with an error at index 2 applied %d of 4 writes, want 3", n)
	}
}

// TestConflictKeepsTheRest: the writes behind a conflict are applied, and those
// that are reported as applied are in the database.
func TestConflictKeepsTheRest(t *testing.T) {
	s, _, _ := throughProxy(t)
	other, mine := make([]syncer.Write, 20), make([]syncer.Write, 20)
	ids := make([]ratelimit.CounterID, len(mine))
	for i := range mine {
		ids[i] = keyID(i)
		other[i], mine[i] = aWrite(1, 100), aWrite(1, 1)
		other[i].ID, mine[i].ID = ids[i], ids[i]
	}
	if _, err := s.Apply(t.Context(), "other", other[:1]); err != nil {
		t.Fatal(err)
	}
	outcomes, err := s.Apply(t.Context(), "me", mine)
	if err != nil {
		t.Fatal(err)
	}
	applied := int64(0)
	for _, out := range outcomes {
		if out.Status == syncer.Applied {
			applied++
		}
	}
	records, err := s.Load(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	stored := int64(-100)
	for _, r := range records {
		stored += counted(r)
	}
	if applied != 19 || stored != applied {
		t.Errorf("%d of 20 writes were reported as applied, %d are stored, want 19", applied, stored)
	}
}
