package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterIDs are of clients and users whose names lie close together.
var counterIDs = []ratelimit.CounterID{
	{ClientID: "shop"},
	{ClientID: "shop", Limit: "per-second"},
	{ClientID: "shop", Username: "ada"},
	{ClientID: "shop", Username: "ada", Limit: "per-second"},
	{ClientID: "shop", Username: "adam"},
	{ClientID: "shopping", Username: "ada"},
	{ClientID: "shop ada"},
}

func testCountersOf(t *testing.T, target Target) {
	t.Helper()
	b := target.fresh(t)
	for i, id := range counterIDs {
		apply(t, b, "writer", creating(id, int64(i+1)))
	}
	of := func(clientID string, limit int) (found []ratelimit.CounterID) {
		t.Helper()
		records, err := b.CountersOf(t.Context(), clientID, limit)
		succeed(t, "counters", err)
		for _, r := range records {
			if i := slices.Index(counterIDs, r.ID); i < 0 || total(&r) != int64(i+1) || r.Version != 1 || r.Problem != "" {
				t.Errorf("a wrong counter: %+v", r)
			}
			found = append(found, r.ID)
		}
		slices.SortFunc(found, func(a, b ratelimit.CounterID) int {
			return cmp.Or(strings.Compare(a.Username, b.Username), strings.Compare(a.Limit, b.Limit))
		})
		return found
	}
	equal(t, "all of a client", counterIDs[:5], of("shop", 100))
	equal(t, "how many", 2, len(of("shop", 2)))
	equal(t, "of another", counterIDs[5:6], of("shopping", 100))
	equal(t, "of nobody", []ratelimit.CounterID(nil), of("sho", 100))
}

func testEraseCounters(t *testing.T, target Target) {
	t.Helper()
	b := target.fresh(t)
	ada, nobody := "ada", ""
	for _, tt := range []struct {
		name     string
		clientID string
		username *string
		left     []int // of counterIDs
	}{
		{"a user", "shop", &ada, []int{0, 1, 4, 5, 6}},
		{"the client itself", "shop", &nobody, []int{2, 3, 4, 5, 6}},
		{"everything of a client", "shop", nil, []int{5, 6}},
		{"what is not there", "unknown", nil, []int{0, 1, 2, 3, 4, 5, 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, id := range counterIDs {
				if load(t, b, id) == nil {
					apply(t, b, "writer", creating(id, 1))
				}
			}
			succeed(t, "erase", b.EraseCounters(t.Context(), tt.clientID, tt.username))
			var left []int
			for i, id := range counterIDs {
				if load(t, b, id) != nil {
					left = append(left, i)
				}
			}
			equal(t, "counters left", tt.left, left)
		})
	}
	t.Run("many", func(t *testing.T) {
		var writes []syncer.Write
		var many []ratelimit.CounterID
		for i := range 600 {
			id := ratelimit.CounterID{ClientID: "many", Username: fmt.Sprintf("%03d", i)}
			many, writes = append(many, id), append(writes, creating(id, 1))
		}
		applyAll(t, b, "writer", writes...)
		succeed(t, "erase", b.EraseCounters(t.Context(), "many", nil))
		records, err := b.Load(t.Context(), many)
		succeed(t, "load", err)
		if len(records) > 0 {
			t.Errorf("%d counters are still there", len(records))
		}
	})
}
