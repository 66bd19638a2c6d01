package storetest

import (
	"fmt"
	"testing"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

func testEraseCounters(t *testing.T, target Target) {
	t.Helper()
	b := target.fresh(t)
	ids := []ratelimit.CounterID{
		{ClientID: "shop"},
		{ClientID: "shop", Limit: "per-second"},
		{ClientID: "shop", Username: "ada"},
		{ClientID: "shop", Username: "ada", Limit: "per-second"},
		{ClientID: "shop", Username: "adam"},
		{ClientID: "shopping", Username: "ada"},
		{ClientID: "shop ada"},
	}
	ada, nobody := "ada", ""
	for _, tt := range []struct {
		name     string
		clientID string
		username *string
		left     []int // of ids
	}{
		{"a user", "shop", &ada, []int{0, 1, 4, 5, 6}},
		{"the client itself", "shop", &nobody, []int{2, 3, 4, 5, 6}},
		{"everything of a client", "shop", nil, []int{5, 6}},
		{"what is not there", "unknown", nil, []int{0, 1, 2, 3, 4, 5, 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, id := range ids {
				if load(t, b, id) == nil {
					apply(t, b, "writer", creating(id, 1))
				}
			}
			succeed(t, "erase", b.EraseCounters(t.Context(), tt.clientID, tt.username))
			var left []int
			for i, id := range ids {
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
