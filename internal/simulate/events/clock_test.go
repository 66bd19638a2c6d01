package events_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/traffic"
)

// localLines returns lines of a table without zones, with requests every step from one instant to
// another.
func localLines(zone *time.Location, from, to time.Time, step time.Duration) (lines []string, at []time.Time) {
	for t := from; t.Before(to); t = t.Add(step) {
		lines = append(lines, t.In(zone).Format("2006-01-02 15:04:05")+",c\n")
		at = append(at, t)
	}
	return lines, at
}

// instants reads logs without zones.
func instants(t *testing.T, zone *time.Location, logs ...string) (at []time.Time, l traffic.Lines) {
	t.Helper()
	for i := range logs {
		logs[i] = "time,client\n" + logs[i]
	}
	r, err := events.Open(writeLogs(t, logs...), events.Options{Zone: zone})
	check.OK(t, err)
	defer r.Close()
	var q traffic.Request
	for r.Next(&q) {
		at = append(at, q.At)
	}
	return at, r.Lines()
}

// changes are nights in which a clock is set back or forward, each from before the change to after
// it.
var changes = map[string]struct {
	zone   string
	change string
}{
	"Berlin, back":       {"Europe/Berlin", "2025-10-26T01:00:00Z"},
	"Berlin, forward":    {"Europe/Berlin", "2025-03-30T01:00:00Z"},
	"New York, back":     {"America/New_York", "2025-11-02T06:00:00Z"},
	"New York, forward":  {"America/New_York", "2025-03-09T07:00:00Z"},
	"Lord Howe, back":    {"Australia/Lord_Howe", "2025-04-05T15:00:00Z"},
	"Lord Howe, forward": {"Australia/Lord_Howe", "2025-10-04T15:30:00Z"},
	"Troll, back":        {"Antarctica/Troll", "2025-10-26T01:00:00Z"}, // by two hours
}

// TestClockChange: lines of a night with a clock change are read with their right times, also
// slightly out of order and with the newest first.
func TestClockChange(t *testing.T) {
	t.Parallel()
	for name, tt := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, change := mustLoad(t, tt.zone), parse(t, tt.change)
			lines, want := localLines(zone, change.Add(-3*time.Hour), change.Add(3*time.Hour), 7*time.Second)
			got, l := instants(t, zone, strings.Join(lines, ""))
			check.Equal(t, "in order", got, want)
			check.Equal(t, "unread", l.Unread, 0)
			mixed := slices.Clone(lines)
			for i := 0; i+20 < len(mixed); i += 20 {
				rand.Shuffle(20, func(a, b int) { mixed[i+a], mixed[i+b] = mixed[i+b], mixed[i+a] })
			}
			got, _ = instants(t, zone, strings.Join(mixed, ""))
			check.Equal(t, "out of order", got, want)
			slices.Reverse(mixed)
			got, _ = instants(t, zone, strings.Join(mixed, ""))
			check.Equal(t, "newest first", got, want)
		})
	}
}

// A local time that the zone skips is unread, and reported.
func TestSkippedHour(t *testing.T) {
	t.Parallel()
	got, l := instants(t, mustLoad(t, "Europe/Berlin"), "2025-03-30 01:59:59,a\n2025-03-30 02:30:00,b\n2025-03-30 03:00:00,c\n2025-03-30 02:30:00Z,d\n")
	check.Equal(t, "read", got, []time.Time{parse(t, "2025-03-30T00:59:59Z"), parse(t, "2025-03-30T01:00:00Z"), parse(t, "2025-03-30T02:30:00Z")})
	check.Equal(t, "lines", summary(l), "3 read, 1 skipped, 1 unread: 000.csv:3: time: does not exist in the time zone because of daylight saving: see --zone")
}

// The repeated hour is also recognised if the requests in it have long gaps.
func TestRepeatedHourSparse(t *testing.T) {
	t.Parallel()
	got, _ := instants(t, mustLoad(t, "Europe/Berlin"),
		"2025-10-26 01:30:00,a\n2025-10-26 02:20:00,a\n2025-10-26 02:50:00,a\n2025-10-26 02:10:00,a\n2025-10-26 02:40:00,a\n2025-10-26 04:00:00,a\n2025-10-27 12:00:00,a\n")
	var utc []string
	for _, at := range got {
		utc = append(utc, at.Format("02 15:04"))
	}
	check.Equal(t, "times", utc, []string{"25 23:30", "26 00:20", "26 00:50", "26 01:10", "26 01:40", "26 03:00", "27 11:00"})
}

func parse(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	check.OK(t, err)
	return at
}
