package migrations

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// earlier is an instance of an earlier release: it keeps all policies in one document.
type earlier struct{ policies, audit *mongo.Collection }

func earlierRelease(db *mongo.Database) earlier {
	return earlier{db.Collection("policies"), db.Collection("audit")}
}

func auditDoc(version int64) bson.D {
	return bson.D{{Key: "_id", Value: version}, {Key: "nonce", Value: fmt.Sprint("n", version)}, {Key: "entry", Value: fmt.Sprintf(`{"version":%d,"id":"i"}`, version)}}
}

// change replaces the document as that release does, and reports whether the version before was there.
func (e earlier) change(t *testing.T, version int64, clients string) bool {
	t.Helper()
	doc := bson.D{
		{Key: "version", Value: version},
		{Key: "set", Value: fmt.Sprintf(`{"version":%d,"settings":{"mode":"off","changed":1},"clients":%s}`, version, clients)},
		{Key: "entry", Value: auditDoc(version)},
	}
	if version == 1 {
		_, err := e.policies.InsertOne(t.Context(), append(bson.D{{Key: "_id", Value: PolicyMarker}}, doc...))
		if err != nil && !mongo.IsDuplicateKeyError(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	result, err := e.policies.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: PolicyMarker}, {Key: "version", Value: version - 1}}, doc)
	if err != nil {
		t.Fatal(err)
	}
	return result.MatchedCount == 1
}

// contents are the documents of the collection, by _id.
func (e earlier) contents(t *testing.T) map[string]string {
	t.Helper()
	cursor, err := e.policies.Find(t.Context(), bson.D{}, options.Find())
	if err != nil {
		t.Fatal(err)
	}
	var docs []struct {
		ID      string `bson:"_id"`
		Version int64
		Folded  int64
		Value   string
	}
	if err := cursor.All(t.Context(), &docs); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, d := range docs {
		all[d.ID] = fmt.Sprintf("version %d, folded %d %s", d.Version, d.Folded, d.Value)
	}
	return all
}

// TestSplitPolicies: nothing of the one document is lost, nor the entry that lies beside it, and an
// instance of the earlier release can change nothing any more, nor take the policies for none.
func TestSplitPolicies(t *testing.T) {
	db := fresh(t)
	old := earlierRelease(db)
	for version := int64(1); version <= 4; version++ {
		old.change(t, version, `{"a.b":{"trusted":true,"changed":2},"shop":{"note":"x","changed":4}}`)
	}
	for range 2 {
		if _, err := Up(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if err := splitPolicies(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"current": "version -1, folded 4 ", "settings": `version 1, folded 0 {"mode":"off","changed":1}`,
			"policies/a.b": `version 2, folded 0 {"trusted":true,"changed":2}`, "policies/shop": `version 4, folded 0 {"note":"x","changed":4}`,
		}
		if diff := cmp.Diff(want, old.contents(t)); diff != "" {
			t.Errorf("policies (-want +got):\n%s", diff)
		}
		if n, err := old.audit.CountDocuments(t.Context(), bson.D{{Key: "_id", Value: int64(4)}}); n != 1 || err != nil {
			t.Errorf("the entry of the last change is in the trail %d times, %v", n, err)
		}
		for version := int64(1); version < 7; version++ {
			if old.change(t, version, "{}") {
				t.Errorf("an earlier release has replaced the marker by version %d", version)
			}
		}
	}
	var doc wholeDoc
	err := old.policies.FindOne(t.Context(), bson.D{{Key: "_id", Value: PolicyMarker}}).Decode(&doc)
	if _, unreadable := clientcfg.SplitPolicySet([]byte(doc.Set)); err != nil || doc.Version == 0 || !errors.Is(unreadable, clientcfg.ErrUnreadable) {
		t.Errorf("an earlier release reads version %d, %v %v", doc.Version, unreadable, err)
	}
}

// TestSplitOfNoPolicies: an earlier release cannot begin a set of its own.
func TestSplitOfNoPolicies(t *testing.T) {
	db := fresh(t)
	if _, err := Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	old := earlierRelease(db)
	if old.change(t, 1, "{}") {
		t.Error("an earlier release has made the first change")
	}
	if diff := cmp.Diff(map[string]string{"current": "version -1, folded 0 "}, old.contents(t)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

// TestSplitBesideAnEarlierRelease: what it changes while many processes migrate is not lost, and what it
// removes does not come back.
func TestSplitBesideAnEarlierRelease(t *testing.T) {
	db := fresh(t)
	old := earlierRelease(db)
	old.change(t, 1, `{"gone":{"changed":1},"shop":{"changed":1}}`)
	// An attempt that got as far as the targets.
	doc := wholeDoc{Version: 1, Set: `{"version":1,"clients":{"gone":{"changed":1},"shop":{"changed":1}}}`}
	targets, err := doc.targets(t.Context(), old.policies)
	if err == nil {
		err = PutPolicyTargets(t.Context(), old.policies, targets, "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	old.change(t, 2, `{"shop":{"changed":1}}`)
	last := int64(2)
	var migrating sync.WaitGroup
	for range 8 {
		migrating.Go(func() {
			if err := splitPolicies(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
	for old.change(t, last+1, fmt.Sprintf(`{"shop":{"note":"%d","changed":%d}}`, last+1, last+1)) {
		last++
	}
	migrating.Wait()
	got := old.contents(t)
	want := map[string]string{
		"current": fmt.Sprintf("version -1, folded %d ", last), "settings": `version 1, folded 0 {"mode":"off","changed":1}`,
		"policies/gone": got["policies/gone"],
		"policies/shop": fmt.Sprintf(`version %d, folded 0 {"note":"%d","changed":%d}`, last, last, last),
	}
	if last == 2 {
		want["policies/shop"] = `version 1, folded 0 {"changed":1}`
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if gone := got["policies/gone"]; gone == "" || gone[len(gone)-4:] != "null" {
		t.Errorf("what was removed is %q", gone)
	}
	if n, err := old.audit.CountDocuments(t.Context(), bson.D{{Key: "_id", Value: last}}); n != 1 || err != nil {
		t.Errorf("the entry of the last change is in the trail %d times, %v", n, err)
	}
}

// TestSplitWhatCannotBeRead: the document stays.
func TestSplitWhatCannotBeRead(t *testing.T) {
	db := fresh(t)
	old := earlierRelease(db)
	old.change(t, 1, `{"shop":5}`)
	if _, err := Up(t.Context(), db); !errors.Is(err, clientcfg.ErrUnreadable) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(map[string]string{"current": "version 1, folded 0 "}, old.contents(t)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}
