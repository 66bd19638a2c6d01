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
	"oauth-server/internal/simulate/traffic"
)

// reversed returns n events, the newest first, about two a second and slightly out of order.
func reversed(n int) []string {
	var out []string
	for i := range n {
		at := 1_700_000_000 + (n-i-i%7)/2
		out = append(out, fmt.Sprintf(`{"time":%d000,"type":"CLIENT_LOGIN","realmId":"r","clientId":"c"}`, at))
	}
	return out
}

// A log with its newest requests first, and too many to sort, is refused with an instruction.
func TestNewestFirst(t *testing.T) {
	t.Parallel()
	all := reversed(17_000)
	var table []string
	for i := range 17_000 {
		table = append(table, fmt.Sprintf("%d,c", 1_700_017_000-i))
	}
	for name, tt := range map[string]struct{ text, says string }{
		"lines":     {strings.Join(all, "\n"), "reverse it: tac FILE | oauth-server simulate -"},
		"an array":  {"[" + strings.Join(all, ",") + "]", "reverse it: jq -sc 'flatten(1) | reverse[]' FILE | oauth"},
		"an answer": {`{"value":[` + strings.Join(all, ",\n") + "]}", "reverse it: jq -sc 'map(.value[]) | reverse[]' FILE |"},
		"a table":   {"time,client\n" + strings.Join(table, "\n"), "reverse it: (head -n 1 FILE; tail -n +2 FILE | tac) |"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := events.Open([]string{"-"}, events.Options{Stdin: strings.NewReader(tt.text)})
			check.ErrorSays(t, err, "- has its newest requests first, more than the 16384 that can be sorted")
			check.ErrorSays(t, err, tt.says)
		})
	}
}

// A log with its newest requests first is sorted if it fits into the buffer. So are pages with
// their newest requests first, one by one.
func TestNewestFirstFitsIn(t *testing.T) {
	t.Parallel()
	all := reversed(16_384)
	pages := reversed(40_000)
	slices.Reverse(pages)
	for page := range slices.Chunk(pages, 1000) {
		slices.Reverse(page)
	}
	for name, tt := range map[string]struct {
		lines []string
		o     events.Options
	}{
		"as many as fit in":      {all, events.Options{}},
		"and others behind them": {append(slices.Clone(all), `{"time":1,"type":"LOGOUT"}`), events.Options{Strict: true}},
		"pages, the newest last": {pages, events.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.o.Stdin = strings.NewReader(strings.Join(tt.lines, "\n"))
			got, r := readAll(t, tt.o, "-")
			check.OK(t, r.Err())
			check.Equal(t, "unread", r.Lines().Unread, 0)
			check.Equal(t, "requests", len(got), len(tt.lines)-int(r.Lines().Skipped))
		})
	}
}

// Such a log is also refused among several files, even if the order is only discovered when its
// requests come.
func TestOneNewestFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
		return path
	}
	other := write("other", reversed(10))
	at := write("at once", reversed(17_000))
	_, err := events.Open([]string{other, at}, events.Options{})
	check.ErrorSays(t, err, "at once has its newest requests first")
	var sparse []string // its first lines have fewer requests than fit into the buffer
	for _, line := range reversed(17_000) {
		sparse = append(sparse, line, strings.Repeat(`{"type":"LOGOUT"}`+"\n", 4))
	}
	r, err := events.Open([]string{other, write("later", sparse)}, events.Options{})
	check.OK(t, err)
	defer r.Close()
	var q traffic.Request
	for r.Next(&q) {
	}
	check.ErrorSays(t, r.Err(), "later has its newest requests first")
}
