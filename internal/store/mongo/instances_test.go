package mongo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/syncer"
)

// TestBesideOtherRecords: a record of an earlier release is alive by its heartbeat, one that makes
// no sense is not, and none of them is removed.
func TestBesideOtherRecords(t *testing.T) {
	s, _, _ := throughProxy(t)
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []bson.D{
		{{Key: "_id", Value: "earlier"}, {Key: "host", Value: "h"}, {Key: "version", Value: "v"}, {Key: "beaten", Value: now}, {Key: "keys", Value: 3}},
		{{Key: "_id", Value: "silent"}, {Key: "beaten", Value: now.Add(-time.Hour)}, {Key: "nonce", Value: "n"}},
		{{Key: "_id", Value: "ahead"}, {Key: "beaten", Value: now.Add(30 * time.Second)}, {Key: "nonce", Value: "a"}, {Key: "time", Value: now}},
		{{Key: "_id", Value: "without"}, {Key: "nonce", Value: "n"}},
		{{Key: "_id", Value: "words"}, {Key: "beaten", Value: "now"}, {Key: "time", Value: "now"}, {Key: "nonce", Value: 7}},
		{{Key: "_id", Value: "above"}, {Key: "beaten", Value: bson.Timestamp{T: 1 << 31}}},
		{{Key: "_id", Value: 7}, {Key: "beaten", Value: now}},
	} {
		if _, err := s.instances.InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	alive, previous, err := s.Beat(t.Context(), syncer.Instance{ID: "words", Nonce: "mine", Time: now}, time.Minute)
	if err != nil || previous != "" {
		t.Fatalf("beat: %q, %v", previous, err)
	}
	want := []syncer.Instance{
		{ID: "ahead", Beaten: now.Add(30 * time.Second), Time: now, Nonce: "a"}, {ID: "earlier", Beaten: now}, {ID: "words", Time: now, Nonce: "mine"},
	}
	later := cmpopts.AcyclicTransformer("beaten", func(i syncer.Instance) syncer.Instance {
		if i.ID == "words" {
			i.Beaten = time.Time{} // just now
		}
		return i
	})
	if diff := cmp.Diff(want, alive, later); diff != "" {
		t.Errorf("alive (-want +got):\n%s", diff)
	}
	if n, err := s.instances.CountDocuments(t.Context(), bson.D{}); err != nil || n != 7 {
		t.Errorf("%d of 7 records are there, %v", n, err)
	}
	reports, err := s.Reports(t.Context(), time.Minute)
	if err != nil || len(reports) != 3 {
		t.Errorf("reports are %+v, %v", reports, err)
	}
}
