package recent_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/limiter/recent"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestRenew: what was done less than so long ago, to a tenth of a second.
func TestRenew(t *testing.T) {
	table := recent.New(noon, 8)
	for _, step := range []struct {
		after time.Duration
		hash  uint64
		want  bool
	}{
		{0, 1, false},
		{0, 2, false},
		{59 * time.Second, 1, true},
		{60 * time.Second, 2, false},
		{110 * time.Second, 1, true},
		{130 * time.Second, 2, false},
	} {
		check.Equal(t, step.after.String()+", before", table.Done(noon.Add(step.after), step.hash, time.Minute), step.want)
		check.Equal(t, step.after.String(), table.Renew(noon.Add(step.after), step.hash, time.Minute), step.want)
	}
}

// TestTheOldestGivesWay: where there is no room.
func TestTheOldestGivesWay(t *testing.T) {
	table := recent.New(noon, 8)
	for hash := range uint64(9) {
		table.Renew(noon.Add(time.Duration(hash)*time.Second), hash+1, time.Hour)
	}
	now := noon.Add(time.Minute)
	check.Equal(t, "the second", table.Renew(now, 2, time.Hour), true)
	check.Equal(t, "the last", table.Renew(now, 9, time.Hour), true)
	check.Equal(t, "the first", table.Renew(now, 1, time.Hour), false)
}
