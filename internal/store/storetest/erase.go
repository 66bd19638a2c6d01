package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// counterIDs have similar names of clients and users.
var counterIDs = []ratelimit.CounterID{
	{ClientID: "shop"},
	{ClientID: "shop", Limit: "per-second"},
	{ClientID: "shop", Username: "ada"},
	{ClientID: "shop", Username: "ada", Limit: "per-second"},
	{ClientID: "shop", Username: "adam"},
	{ClientID: "shop", Username: "ada\x00"},
	{ClientID: "shop", Username: "\x7f"},
	{ClientID: "shop", Username: "名前"},
	{ClientID: "shop", Username: "\uFFFD"},
	{ClientID: "shop", Username: "\U0001F600", Limit: "per-second"},
	{ClientID: "shopping", Username: "ada"},
	{ClientID: "shop ada"},
	{ClientID: "shop2", Username: "ada"},
	{ClientID: "Shop", Username: "ada"},
	{ClientID: "shop\x00", Username: "ada"},
	{ClientID: "", Username: "ada"},
	{ClientID: "名", Username: "ada"},
}

// eraser is a [SyncBackend] that lets operators read and erase counters.
type eraser interface {
	SyncBackend
	CountersOf(ctx context.Context, clientID string, username *string, limit int) ([]syncer.Record, error)
	EraseCounters(ctx context.Context, clientID string, username *string) error
}

func testCountersOf(t *testing.T, b eraser) {
	t.Helper()
	for i, id := range counterIDs {
		apply(t, b, id, adding("writer", int64(i+1)))
	}
	of := func(clientID string, username *string, limit int) (found []ratelimit.CounterID) {
		t.Helper()
		records, err := b.CountersOf(t.Context(), clientID, username, limit)
		succeed(t, "counters", err)
		for _, r := range records {
			if i := slices.Index(counterIDs, r.ID); i < 0 || total(&r) != int64(i+1) || r.Version != 1 || r.Frame != minute || r.Problem != "" {
				t.Errorf("a wrong counter: %+v", r)
			}
			found = append(found, r.ID)
		}
		slices.SortFunc(found, syncer.CompareIDs)
		return found
	}
	for _, clientID := range []string{"shop", "shop2", "sho", "shopping", "Shop", "shop ", "shop\x00", "shop\xff", "", "名", "\U0001F600"} {
		var want []ratelimit.CounterID
		for _, id := range counterIDs {
			if id.ClientID == clientID {
				want = append(want, id)
			}
		}
		slices.SortFunc(want, syncer.CompareIDs)
		equal(t, fmt.Sprintf("all of %q", clientID), want, of(clientID, nil, 100))
	}
	equal(t, "how many", 2, len(of("shop", nil, 2)))
	for _, username := range []string{"ada", "", "ada\x00", "\U0001F600", "ad", "ada\xff"} {
		var want []ratelimit.CounterID
		for _, id := range counterIDs {
			if id.ClientID == "shop" && id.Username == username {
				want = append(want, id)
			}
		}
		slices.SortFunc(want, syncer.CompareIDs)
		equal(t, fmt.Sprintf("all of the user %q", username), want, of("shop", &username, 100))
	}
	equal(t, "how many of a user", 1, len(of("shop", new("ada"), 1)))
}

func testEraseCounters(t *testing.T, b eraser) {
	t.Helper()
	of := func(name string) *string { return &name }
	for _, tt := range []struct {
		name     string
		clientID string
		username *string
		erased   func(id ratelimit.CounterID) bool
	}{
		{"a user", "shop", of("ada"), func(id ratelimit.CounterID) bool { return id.ClientID == "shop" && id.Username == "ada" }},
		{"the client itself", "shop", of(""), func(id ratelimit.CounterID) bool { return id.ClientID == "shop" && id.Username == "" }},
		{"a user of odd bytes", "shop", of("ada\x00"), func(id ratelimit.CounterID) bool { return id.Username == "ada\x00" }},
		{"a user far behind", "shop", of("\U0001F600"), func(id ratelimit.CounterID) bool { return id.Username == "\U0001F600" }},
		{"everything of a client", "shop", nil, func(id ratelimit.CounterID) bool { return id.ClientID == "shop" }},
		{"a client that has one", "shop\x00", nil, func(id ratelimit.CounterID) bool { return id.ClientID == "shop\x00" }},
		{"a user that is not there", "shop", of("ad"), nil},
		{"a user that is no text", "shop", of("ada\xff"), nil},
		{"a client that is not there", "sho", nil, nil},
		{"a client that is no text", "shop\xff", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want, left []ratelimit.CounterID
			for _, id := range counterIDs {
				if load(t, b, id) == nil {
					apply(t, b, id, adding("writer", 1))
				}
				if tt.erased == nil || !tt.erased(id) {
					want = append(want, id)
				}
			}
			succeed(t, "erase", b.EraseCounters(t.Context(), tt.clientID, tt.username))
			for _, id := range counterIDs {
				if load(t, b, id) != nil {
					left = append(left, id)
				}
			}
			equal(t, "counters left", want, left)
		})
	}
	t.Run("many", func(t *testing.T) {
		items := make([]syncer.Item, 600)
		for i := range items {
			id := ratelimit.CounterID{ClientID: "many", Username: fmt.Sprintf("%03d", i)}
			items[i] = syncer.Item{ID: id, Write: adding("writer", 1)}
		}
		exchange(t, b, items...)
		succeed(t, "erase", b.EraseCounters(t.Context(), "many", nil))
		for i := range items {
			items[i] = syncer.Item{ID: items[i].ID, Read: true}
		}
		for _, r := range exchange(t, b, items...) {
			if r.Record != nil {
				t.Errorf("%+v is still there", r.Record)
			}
		}
	})
}
