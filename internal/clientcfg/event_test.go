package clientcfg_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// eventsAt returns a trail with an event at each time, in hours from noon.
func eventsAt(t *testing.T, hours ...int) (*clientcfg.AuditTrail, *bolt.Store) {
	t.Helper()
	file := openFile(t)
	trail := clientcfg.NewAuditTrail(followerOf(t, file))
	for i, hour := range hours {
		check.OK(t, trail.AddEvent(t.Context(), clientcfg.Event{
			At: noon.Add(time.Duration(hour) * time.Hour), Action: "update", Target: clientcfg.ClientTarget(fmt.Sprint(i % 2)),
			Actor: clientcfg.Actor{ClientID: "ops", Username: "ada"}, Reason: fmt.Sprint(i + 1), Before: []byte("null"), After: []byte(`{"a":1}`),
		}))
	}
	return trail, file
}

func reasons(t *testing.T, trail *clientcfg.AuditTrail, q clientcfg.EventQuery) string {
	t.Helper()
	events, err := trail.Events(t.Context(), q)
	check.OK(t, err)
	var list []string
	for i := range events {
		list = append(list, events[i].Reason)
	}
	return strings.Join(list, " ")
}

func TestEvents(t *testing.T) {
	trail, file := eventsAt(t, 0, 1, 2, 3, 4)
	check.Equal(t, "all", reasons(t, trail, clientcfg.EventQuery{}), "5 4 3 2 1")
	check.Equal(t, "of a target", reasons(t, trail, clientcfg.EventQuery{Target: "clients/1"}), "4 2")
	check.Equal(t, "a page", reasons(t, trail, clientcfg.EventQuery{Limit: 2, Before: 4}), "3 2")
	events, err := trail.Events(t.Context(), clientcfg.EventQuery{Limit: 1})
	check.OK(t, err)
	e := events[0]
	check.Equal(t, "event", e.Number == 5 && e.ID != "" && e.At.Equal(noon.Add(4*time.Hour)) && string(e.After) == `{"a":1}`, true)

	for _, value := range []string{`{}`, `{"action":"update","reason":"newer","why":1}`} { // the first one is not shown
		_, newest, err := file.Trail(t.Context(), store.Mark{}, 1)
		check.OK(t, err)
		_, err = file.Append(t.Context(), store.Entry{Number: newest.Number + 1, At: noon, Value: []byte(value)})
		check.OK(t, err)
	}
	events, err = trail.Events(t.Context(), clientcfg.EventQuery{Limit: 2})
	check.OK(t, err)
	check.ErrorIs(t, events[0].Err, clientcfg.ErrUnreadable, "of a newer version")
	check.Equal(t, "what is known of it", events[0].Reason+" "+events[1].Reason, "newer 5")
}

// TestSweepEvents: events older than noon are removed, except the newest. An entry with a wrong
// time does not cause a recent one to be removed.
func TestSweepEvents(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hours []int
		left  string
	}{
		{"none", nil, ""},
		{"none is old", []int{0, 1, 2}, "3 2 1"},
		{"some are old", []int{-3, -2, -1, 0, 1}, "5 4"},
		{"all are old", []int{-3, -2, -1}, "3"},
		{"one in between is dated too early", []int{-2, 0, -9, 1, 2}, "5 4 3 2"},
		{"one in between is dated in the future", []int{-3, 99, -2, 1, 2}, "5 4"},
		{"the newest is dated too early", []int{-3, -2, 1, -9}, "4 3"},
		{"many", append(make([]int, 3), 1, 2), "5 4 3 2 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trail, _ := eventsAt(t, tt.hours...)
			check.OK(t, trail.SweepEvents(t.Context(), noon, noon.Add(24*time.Hour)))
			check.Equal(t, "left", reasons(t, trail, clientcfg.EventQuery{}), tt.left)
		})
	}
}
