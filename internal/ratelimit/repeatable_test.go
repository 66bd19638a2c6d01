package ratelimit

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestRepeatable: counters with the same seed queue keys for the syncer in the same order, and
// counters with different seeds in different orders.
func TestRepeatable(t *testing.T) {
	_, _, eff := single(NewLimit("l", 100, time.Minute))
	order := func(seed uint64) (names []string) {
		c := NewRepeatable(1000, seed)
		y := c.Sync(SyncOptions{Interval: time.Second})
		for i := range 200 {
			c.Take(at(epoch), Key{ClientID: "client", Username: strconv.Itoa(i)}, eff, 1)
		}
		for _, p := range y.Due(at(epoch), nil) {
			task, ok := y.Begin(at(epoch), p.Ticket, 1)
			if !ok {
				t.Fatal("a ticket is not good")
			}
			names = append(names, task.ID.Username)
		}
		return names
	}
	if first := order(1); len(first) != 200 || !slices.Equal(first, order(1)) || slices.Equal(first, order(2)) {
		t.Error("the order does not follow from the seed, or is the same for all")
	}
}
