package events_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/events"
	"oauth-server/internal/simulate/traffic"
)

// csvOf returns a table with a request at each of these seconds.
func csvOf(seconds ...int) string {
	var out strings.Builder
	out.WriteString("time,client\n")
	for i, s := range seconds {
		_, _ = fmt.Fprintf(&out, "%d,c%d\n", 1_700_000_000+s, i)
	}
	return out.String()
}

// secondsOf reads a log and returns the seconds of its requests.
func secondsOf(t *testing.T, r *events.Reader) (out []int) {
	t.Helper()
	var q traffic.Request
	for r.Next(&q) {
		out = append(out, int(q.At.Unix()-1_700_000_000))
	}
	return out
}

func openText(t *testing.T, text string, o events.Options) *events.Reader {
	t.Helper()
	o.Stdin = strings.NewReader(text)
	r, err := events.Open([]string{"-"}, o)
	check.OK(t, err)
	t.Cleanup(r.Close)
	return r
}

// Files are merged by time, whatever their names, and each is open only while its requests come.
func TestMerge(t *testing.T) {
	t.Parallel()
	names := writeLogs(t, csvOf(50, 51, 52), csvOf(1, 60), "", csvOf(2, 3), "time,client\n")
	r, err := events.Open(append(names, "-"), events.Options{Stdin: strings.NewReader(csvOf(2, 70))})
	check.OK(t, err)
	defer r.Close()
	check.Equal(t, "format of an empty file", r.Lines().Files[2].Format, "")
	check.Equal(t, "seconds", secondsOf(t, r), []int{1, 2, 2, 3, 50, 51, 52, 60, 70})
	check.Equal(t, "lines", summary(r.Lines()), "9 read, 5 skipped, 0 unread")
	read, total := r.Progress()
	check.Equal(t, "bytes in all", total, 0) // the standard input has no size
	check.Equal(t, "bytes", read > 100, true)
}

func TestProgress(t *testing.T) {
	t.Parallel()
	text := csvOf(1, 2, 3)
	name := writeLogs(t, text)[0]
	for _, names := range [][]string{{name}, {name, name}} { // a file given twice is read twice
		_, r := readAll(t, events.Options{}, names...)
		read, total := r.Progress()
		check.Equal(t, "read", read, int64(len(text)*len(names)))
		check.Equal(t, "total", total, read)
	}
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	check.OK(t, err)
	check.OK(t, w.Close())
	return out.Bytes()
}

func zstandard(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	check.OK(t, err)
	return w.EncodeAll([]byte(text), nil)
}

// Archives are recognised by their content. The readable part of a damaged archive counts, and the
// rest counts as one line.
func TestArchives(t *testing.T) {
	t.Parallel()
	var seconds []int
	for i := range 3000 {
		seconds = append(seconds, i)
	}
	text := csvOf(seconds...)
	gz, zst := zipped(t, text), zstandard(t, text)
	marked, empty := "\xef\xbb\xbf"+text, []byte("\x5a\x2a\x4d\x18\x03\x00\x00\x00abc") // a skippable frame
	zeros := make([]byte, 100_000)
	damaged := bytes.Clone(gz)
	damaged[len(damaged)-3] ^= 1
	for name, tt := range map[string]struct {
		log    []byte
		whole  bool
		unread string
	}{
		"gzip":                {gz, true, ""},
		"zstd":                {zst, true, ""},
		"two in one":          {append(bytes.Clone(gz), zipped(t, "3000,c\n")...), false, ""},
		"a mark in gzip":      {zipped(t, marked), true, ""},
		"a mark in zstd":      {zstandard(t, marked), true, ""},
		"marks in the middle": {slices.Concat(zipped(t, marked), zipped(t, "\xef\xbb\xbf3000,c\n")), false, ""},
		"zeros behind gzip":   {slices.Concat(gz, zeros), true, "file: cannot be decompressed: the archive is damaged"},
		"frame before zstd":   {slices.Concat(empty, empty, zst), true, ""},
		"frame behind zstd":   {slices.Concat(zst, empty), true, ""},
		"frames between":      {slices.Concat(empty, zst, empty, zstandard(t, "3000,c\n"), empty), false, ""},
		"zeros behind zstd":   {slices.Concat(zst, zeros), true, "file: cannot be decompressed: the archive is damaged"},
		"text behind gzip":    {slices.Concat(gz, []byte("text, of which there is no archive")), true, "file: cannot be decompressed: the archive is damaged"},
		"half a gzip header":  {slices.Concat(gz, gz[:5]), true, "file: ends early: the archive is truncated"},
		"half a frame":        {slices.Concat(zst, empty[:6]), true, "file: ends early: the archive is truncated"},
		"half a zstd header":  {slices.Concat(zst, zst[:3]), true, "file: ends early: the archive is truncated"},
		"byte order mark":     {append([]byte("\xef\xbb\xbf"), text...), true, ""},
		"carriage returns":    {[]byte(strings.ReplaceAll(text, "\n", "\r\n")), true, ""},
		"no last line break":  {[]byte(strings.TrimSpace(text)), true, ""},
		"truncated gzip":      {gz[:len(gz)/2], false, "file: ends early: the archive is truncated"},
		"truncated zstd":      {zst[:len(zst)-5], false, "file: ends early: the archive is truncated"},
		"damaged gzip":        {damaged, false, "file: cannot be decompressed: the archive is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := events.Open([]string{"-"}, events.Options{Stdin: bytes.NewReader(tt.log), Format: events.CSV})
			check.OK(t, err)
			defer r.Close()
			got := secondsOf(t, r)
			l := r.Lines()
			if tt.whole {
				check.Equal(t, "seconds", got, seconds)
			}
			want := fmt.Sprintf("%d read, %d skipped, 0 unread", len(got), l.Skipped)
			if tt.unread != "" {
				want = fmt.Sprintf("%d read, %d skipped, 1 unread: -:%d: %s", len(got), l.Skipped, l.Read+l.Skipped+1, tt.unread)
			}
			check.Equal(t, "lines", summary(l), want)
		})
	}
}

// failingReader fails after its text.
type failingReader struct{ io.Reader }

func (f failingReader) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("the disk is gone")
	}
	return n, err
}

// Strict reading stops at the first unreadable line, and reports its place and problem.
func TestStrict(t *testing.T) {
	t.Parallel()
	r := openText(t, csvOf(1)+"noon,c\n1700000002,c\n", events.Options{Strict: true})
	check.Equal(t, "requests", len(secondsOf(t, r)), 0) // it stops while it still looks for earlier requests
	check.Equal(t, "error", *check.As[*events.LineError](t, r.Err()), events.LineError{File: "-", Line: 3, Field: "time", Problem: "is not a time with a date"})
	check.ErrorSays(t, r.Err(), "-:3: time: is not a time with a date")
	var q traffic.Request
	check.Equal(t, "another request", r.Next(&q), false)

	_, r = readAll(t, events.Options{Strict: true}, writeLogs(t, csvOf(1), csvOf(2)+"noon,c\nnight,c\n")...)
	check.ErrorSays(t, r.Err(), "001.csv:3: time: is not a time with a date")
	check.Equal(t, "unread", r.Lines().Unread, 1)
}

func mustLoad(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	check.OK(t, err)
	return l
}

// clientsOf reads a log and returns its clients.
func clientsOf(r *events.Reader) (out []string) {
	var q traffic.Request
	for r.Next(&q) {
		out = append(out, q.Client)
	}
	return out
}

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
	few := strings.Join(reversed(10), "\n")
	_, err := events.Open(writeLogs(t, few, strings.Join(reversed(17_000), "\n")), events.Options{})
	check.ErrorSays(t, err, "001.csv has its newest requests first")
	var sparse []string // its first lines have fewer requests than fit into the buffer
	for _, line := range reversed(17_000) {
		sparse = append(sparse, line, strings.Repeat(`{"type":"LOGOUT"}`+"\n", 4))
	}
	_, r := readAll(t, events.Options{}, writeLogs(t, few, strings.Join(sparse, "\n"))...)
	check.ErrorSays(t, r.Err(), "001.csv has its newest requests first")
}

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
		for behind, late := range map[int]int{tc.depth - 1: 0, tc.depth + 1: 1} {
			texts := slices.Repeat([]string{""}, tc.files)
			texts[0] = lateAfter(behind)
			got, r := readAll(t, events.Options{}, writeLogs(t, texts...)...)
			want := fmt.Sprintf("%d read, 1 skipped, %d unread", behind+1-late, late)
			if late > 0 {
				want += fmt.Sprintf(": 000.csv:%d: time: is too far out of order: sort the log, or give its parts as separate files", behind+2)
			}
			check.Equal(t, fmt.Sprintf("of %d files, behind %d", tc.files, behind), summary(r.Lines()), want)
			check.Equal(t, "requests", len(got), behind+1-late)
		}
	}
}

// TestLateFile: a file is opened at the time of the first request in its first lines. An earlier
// request further down is unread if the requests of other files have passed its time.
func TestLateFile(t *testing.T) {
	t.Parallel()
	late := csvOf(200) + strings.Repeat("\n", 70_000) + strings.TrimPrefix(csvOf(50, 300), "time,client\n")
	got, r := readAll(t, events.Options{}, writeLogs(t, csvOf(0, 100, 250), late)...)
	check.Equal(t, "requests", got, []string{row(0, "c0"), row(100, "c1"), row(200, "c0"), row(250, "c2"), row(300, "c1")})
	check.Equal(t, "unread", r.Lines().Unread, 1)
}

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

// changes are when a clock is set back or forward.
var changes = map[string]struct{ zone, change string }{
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
