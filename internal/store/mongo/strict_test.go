package mongo

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/store/mongo/mongotest"
	"oauth-server/internal/syncer"
)

// TestServerObeysOrdered checks the server that the tests run on: where it ignored `ordered`, a
// bulk that is ordered by mistake would lose no count here and lose many in production.
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

// TestConflictKeepsTheRest: the writes behind a conflict are applied, and those that are reported
// as applied are in the database.
func TestConflictKeepsTheRest(t *testing.T) {
	s, _, _ := throughProxy(t)
	items := make([]syncer.Item, 20)
	for i := range items {
		items[i] = syncer.Item{ID: keyID(i), Write: onto(nil, aWrite("me", 1, 1), true)}
	}
	slices.SortFunc(items, func(a, b syncer.Item) int { return syncer.CompareIDs(a.ID, b.ID) })
	mustCount := func(want map[syncer.Status]int, items ...syncer.Item) []syncer.Result {
		t.Helper()
		results, err := s.Exchange(t.Context(), items)
		if err != nil {
			t.Fatal(err)
		}
		got := map[syncer.Status]int{}
		for i := range results {
			if items[i].Write != nil {
				got[results[i].Status]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		return results
	}
	mustCount(map[syncer.Status]int{syncer.Applied: 1}, syncer.Item{ID: items[0].ID, Write: aWrite("other", 1, 100)})
	mustCount(map[syncer.Status]int{syncer.Applied: 19, syncer.Conflict: 1}, items...)
	stored := int64(-100)
	for i := range items {
		items[i] = syncer.Item{ID: items[i].ID, Read: true}
	}
	for _, r := range mustCount(map[syncer.Status]int{}, items...) {
		stored += counted(r.Record)
	}
	if stored != 19 {
		t.Errorf("%d of 19 applied writes are stored", stored)
	}
}
