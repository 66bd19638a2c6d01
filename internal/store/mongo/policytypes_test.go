package mongo

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
)

// setFields gives fields of a document other values, whatever the validator says.
func setFields(t *testing.T, s *Store, collection string, id any, set bson.D) {
	t.Helper()
	_, err := s.db.Collection(collection).UpdateByID(t.Context(), id, bson.D{{Key: "$set", Value: set}}, options.UpdateOne().SetBypassDocumentValidation(true).SetUpsert(true))
	if err != nil {
		t.Fatal(err)
	}
}

// TestFieldsOfAnotherTypeBesideAnEntry: nothing but the entry's text is needed to use it.
func TestFieldsOfAnotherTypeBesideAnEntry(t *testing.T) {
	for _, field := range []bson.E{{Key: "at", Value: "yesterday"}, {Key: "nonce", Value: 7}, {Key: "nonce", Value: nil}, {Key: "target", Value: 7}} {
		for _, bad := range []int64{4, 5} {
			_, s, _ := throughProxy(t)
			changeTo(t, s, 5)
			runs, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			setFields(t, s, "audit", bad, bson.D{field})
			entries, err := s.Audit(t.Context(), clientcfg.AuditQuery{})
			if err != nil || len(entries) != 5 {
				t.Errorf("%d entries, %v", len(entries), err)
			}
			for range 2 {
				if err := runs.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
			}
			starts, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			check.Equal(t, "the status of a start", starts.Status().Err, nil)
			changeTo(t, s, 6)
			for _, p := range []*clientcfg.PolicySource{runs, starts} {
				if err := p.Refresh(t.Context()); err != nil || p.Snapshot().Version() != 6 {
					t.Errorf("version %d, %v", p.Snapshot().Version(), err)
				}
			}
		}
	}
}

// TestTargetsOfAnotherType: of a document of the fold that is none, that target alone cannot be used.
func TestTargetsOfAnotherType(t *testing.T) {
	for _, set := range []bson.D{
		{{Key: "value", Value: 7}}, {{Key: "value", Value: bson.D{}}}, {{Key: "value", Value: nil}}, {{Key: "version", Value: "x"}},
	} {
		_, s, _ := throughProxy(t)
		changeTo(t, s, 5)
		if err := s.foldPolicies(t.Context()); err != nil {
			t.Fatal(err)
		}
		setFields(t, s, "policies", "policies/2", set)
		p, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		check.Equal(t, "left out", p.Status().LeftOut, 1)
		_, other := p.Snapshot().Policy("0")
		check.Equal(t, "the other is there", other, true)
	}
}

// TestTargetsAheadOfTheMarker: an instance folded further than an entry that cannot be read, and was
// killed before it moved the marker. The state is that of before the entry, where that is known.
func TestTargetsAheadOfTheMarker(t *testing.T) {
	_, s, _ := throughProxy(t)
	put := func(version int64, client, before, after string) {
		t.Helper()
		e := clientcfg.PolicyEntry{AuditEntry: clientcfg.AuditEntry{Version: version, ID: strconv.FormatInt(version, 10)}, Changes: []clientcfg.Change{{
			Target: clientcfg.PolicyTarget(client), Before: json.RawMessage(before), After: json.RawMessage(after),
		}}}
		if err := s.AppendPolicyEntry(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	put(1, "a", "null", `{"note":"1"}`)
	put(2, "b", "null", `{"note":"2"}`)
	put(3, "c", "null", `{"note":"3"}`)
	put(4, "a", `{"note":"1"}`, `{"note":"4"}`)
	put(5, "b", `{"note":"2"}`, `{"note":"5"}`)
	put(6, "b", `{"note":"5"}`, "null")
	put(7, "new", "null", `{"note":"7"}`)
	entries, err := s.PolicyEntries(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, targets, _ := latest(0, entries)
	if err := putPolicyTargets(t.Context(), s.policies, slices.Collect(maps.Values(targets)), "test"); err != nil {
		t.Fatal(err)
	}
	setFields(t, s, "audit", int64(3), bson.D{{Key: "entry", Value: 7}})
	p, err := clientcfg.NewPolicySource(t.Context(), s, clientcfg.PolicyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "version", p.Snapshot().Version(), 2)
	for client, want := range map[string]string{"a": "1", "b": "2", "c": "", "new": ""} {
		own, _ := p.Snapshot().Policy(client)
		check.Equal(t, "note of "+client, own.Note, want)
	}
}
