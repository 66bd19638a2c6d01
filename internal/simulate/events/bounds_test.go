package events_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
)

// writeLogs writes a log with each text, and returns their names.
func writeLogs(t *testing.T, texts ...string) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		names = append(names, filepath.Join(dir, fmt.Sprintf("%03d.csv", i)))
		check.OK(t, os.WriteFile(names[i], []byte(text), 0o600))
	}
	return names
}

// lateAfter returns a log with n requests, a second apart, and then one that is earlier than all of
// them.
func lateAfter(n int) string {
	seconds := make([]int, n+1)
	for i := range n {
		seconds[i] = 100 + i
	}
	return csvOf(seconds...)
}

// TestDepth: the more files there are, the less far a request can be from its place, down to 1,024
// others. This bounds the requests held for all files together.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ files, depth int }{{1, 16 << 10}, {4, 16 << 10}, {16, 4 << 10}, {100, 1 << 10}} {
		for behind, late := range map[int]uint64{tc.depth - 1: 0, tc.depth + 1: 1} {
			texts := slices.Repeat([]string{""}, tc.files)
			texts[0] = lateAfter(behind)
			r, err := events.Open(writeLogs(t, texts...), events.Options{})
			check.OK(t, err)
			seconds := secondsOf(t, r)
			what := fmt.Sprintf("of %d files, behind %d", tc.files, behind)
			check.Equal(t, what+": unread", r.Lines().Unread, late)
			for _, c := range r.Lines().Causes {
				check.Equal(t, what+": cause", c.Field+": "+c.Problem, "time: is too far out of order: sort the log, or give its parts as separate files")
			}
			check.Equal(t, what+": read", len(seconds), behind+1-int(late))
			r.Close()
		}
	}
}

// TestLateFile: a file is opened at the time of the first request in its first lines. An earlier
// request further down is unread if the requests of other files have passed its time.
func TestLateFile(t *testing.T) {
	t.Parallel()
	late := csvOf(200) + strings.Repeat("\n", 70_000) + strings.TrimPrefix(csvOf(50, 300), "time,client\n")
	r, err := events.Open(writeLogs(t, csvOf(0, 100, 250), late), events.Options{})
	check.OK(t, err)
	defer r.Close()
	check.Equal(t, "requests", secondsOf(t, r), []int{0, 100, 200, 250, 300})
	check.Equal(t, "read", r.Lines().Read, 5)
	check.Equal(t, "unread", r.Lines().Unread, 1)
}
