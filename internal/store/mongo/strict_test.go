package mongo

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/syncer"
)

// TestConflictKeepsTheRest: the writes after a conflict are applied, and every write reported as
// applied is in the database.
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
