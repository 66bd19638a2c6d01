package events_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// Requests that are out of order are sorted. Requests with the same time keep their order in the
// log.
func TestOrder(t *testing.T) {
	t.Parallel()
	got, r := readAll(t, events.Options{Stdin: strings.NewReader(csvOf(3, 1, 2, 1, 5))}, "-")
	for i, want := range []string{`:01Z "c1"`, `:01Z "c3"`, `:02Z "c2"`, `:03Z "c0"`, `:05Z "c4"`} {
		if !strings.Contains(strings.ReplaceAll(got[i], "22:13:2", ":0"), want) {
			t.Errorf("request %d is %s, want %s", i, got[i], want)
		}
	}
	check.Equal(t, "reordered", r.Lines().Reordered, 3)
}

// A request that is too far from its place is not read, and no other request is lost because of it.
func TestTooLate(t *testing.T) {
	t.Parallel()
	seconds := []int{0}
	for i := range 20_000 {
		seconds = append(seconds, 100+i)
	}
	seconds = append(seconds, 99, 30_000)
	r := openText(t, csvOf(seconds...), events.Options{})
	got := secondsOf(t, r)
	check.Equal(t, "requests", len(got), 20_002)
	check.Equal(t, "lines", summary(r.Lines()),
		"20002 read, 1 skipped, 1 unread: -:20003: time: is before that of lines far above, and too far from its place to be put in order: "+
			"sort the log, or give its parts as files of their own")
}

// Files are merged by time, whatever their names, and each is open only while its requests come.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	for i, text := range []string{csvOf(50, 51, 52), csvOf(1, 60), "", csvOf(2, 3), "time,client\n"} {
		names = append(names, filepath.Join(dir, fmt.Sprintf("%d.csv", i)))
		check.OK(t, os.WriteFile(names[i], []byte(text), 0o600))
	}
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
	name := filepath.Join(t.TempDir(), "x.csv")
	text := csvOf(1, 2, 3)
	check.OK(t, os.WriteFile(name, []byte(text), 0o600))
	for _, names := range [][]string{{name}, {name, name}} { // a file given twice is read twice
		r, err := events.Open(names, events.Options{})
		check.OK(t, err)
		secondsOf(t, r)
		read, total := r.Progress()
		check.Equal(t, "read", read, int64(len(text)*len(names)))
		check.Equal(t, "total", total, read)
		r.Close()
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
		"zeros behind gzip":   {slices.Concat(gz, zeros), true, "file: cannot be decompressed further: the archive is damaged"},
		"frame before zstd":   {slices.Concat(empty, empty, zst), true, ""},
		"frame behind zstd":   {slices.Concat(zst, empty), true, ""},
		"frames between":      {slices.Concat(empty, zst, empty, zstandard(t, "3000,c\n"), empty), false, ""},
		"zeros behind zstd":   {slices.Concat(zst, zeros), true, "file: cannot be decompressed further: the archive is damaged"},
		"text behind gzip":    {slices.Concat(gz, []byte("text, of which there is no archive")), true, "file: cannot be decompressed further: the archive is damaged"},
		"half a gzip header":  {slices.Concat(gz, gz[:5]), true, "file: ends before its end: the archive is truncated"},
		"half a frame":        {slices.Concat(zst, empty[:6]), true, "file: ends before its end: the archive is truncated"},
		"half a zstd header":  {slices.Concat(zst, zst[:3]), true, "file: ends before its end: the archive is truncated"},
		"byte order mark":     {append([]byte("\xef\xbb\xbf"), text...), true, ""},
		"carriage returns":    {[]byte(strings.ReplaceAll(text, "\n", "\r\n")), true, ""},
		"no last line break":  {[]byte(strings.TrimSpace(text)), true, ""},
		"truncated gzip":      {gz[:len(gz)/2], false, "file: ends before its end: the archive is truncated"},
		"truncated zstd":      {zst[:len(zst)-5], false, "file: ends before its end: the archive is truncated"},
		"damaged gzip":        {damaged, false, "file: cannot be decompressed further: the archive is damaged"},
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
			check.Equal(t, "read", l.Read, uint64(len(got)))
			if tt.unread == "" {
				check.Equal(t, "unread", l.Causes, nil)
				return
			}
			check.Equal(t, "unread", len(l.Causes), 1)
			check.Equal(t, "cause", l.Causes[0].Field+": "+l.Causes[0].Problem, tt.unread)
			check.Equal(t, "its lines", l.Causes[0].Lines, 1)
			check.Equal(t, "its line", l.Causes[0].First, fmt.Sprintf("-:%d", l.Read+l.Skipped+1))
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

func TestReadError(t *testing.T) {
	t.Parallel()
	_, r := readAll(t, events.Options{Stdin: failingReader{strings.NewReader(csvOf(1, 2) + "3,half a li")}}, "-")
	check.Equal(t, "lines", summary(r.Lines()), "2 read, 1 skipped, 1 unread: -:4: file: cannot be read further")
}

// Strict reading stops at the first unreadable line, and reports its place and problem.
func TestStrict(t *testing.T) {
	t.Parallel()
	r := openText(t, csvOf(1)+"noon,c\n1700000002,c\n", events.Options{Strict: true})
	check.Equal(t, "requests", len(secondsOf(t, r)), 0) // it stops while it still looks for earlier requests
	var at *events.LineError
	if !errors.As(r.Err(), &at) || at.File != "-" || at.Line != 3 || at.Field != "time" {
		t.Errorf("the error is %v", r.Err())
	}
	check.ErrorSays(t, r.Err(), "-:3: time: is not a time with a date")
	var q traffic.Request
	check.Equal(t, "another request", r.Next(&q), false)

	dir := t.TempDir()
	names := []string{filepath.Join(dir, "first"), filepath.Join(dir, "second")}
	check.OK(t, os.WriteFile(names[0], []byte(csvOf(1)), 0o600))
	check.OK(t, os.WriteFile(names[1], []byte(csvOf(2)+"noon,c\nnight,c\n"), 0o600))
	_, r = readAll(t, events.Options{Strict: true}, names...)
	check.ErrorSays(t, r.Err(), "second:3: time: is not a time with a date")
	check.Equal(t, "unread", r.Lines().Unread, 1)
}

// A line of more than 1 MiB is unread, and the next one is read.
func TestLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20)
	_, r := readAll(t, events.Options{Stdin: strings.NewReader(csvOf(1) + long + "\n1700000002,c\n1700000003," + long)}, "-")
	check.Equal(t, "lines", summary(r.Lines()), "2 read, 1 skipped, 2 unread: -:3: line: is longer than 1 MiB")
	event := `{"time":1700000000000,"type":"CLIENT_LOGIN","realmId":"r","clientId":"c"}`
	_, r = readAll(t, events.Options{Format: events.Keycloak, Stdin: strings.NewReader("{\n\"a\": [" + strings.Repeat("1,\n", 2<<20) + "1]}" + event)}, "-")
	check.Equal(t, "lines", summary(r.Lines()), "1 read, 0 skipped, 1 unread: -:1: line: is longer than 1 MiB")
	_, r = readAll(t, events.Options{Stdin: strings.NewReader("[\n" + event + ",\n{\"a\":\"" + long + "\"},\n" + event + "]")}, "-")
	check.Equal(t, "lines", summary(r.Lines()), "2 read, 0 skipped, 1 unread: -:3: line: is longer than 1 MiB")
}

// A time without a zone is in Options.Zone. Other times use their own zone.
func TestZones(t *testing.T) {
	t.Parallel()
	text := "time,client\n2026-07-01 12:00:00,a\n2026-07-01T12:00:00Z,b\n2026-07-01T12:00:00+05:30,c\n2026-01-01 12:00:00,d\n"
	for zone, want := range map[*time.Location][]string{
		nil:                          {"2026-01-01T12:00:00Z d", "2026-07-01T06:30:00Z c", "2026-07-01T12:00:00Z a", "2026-07-01T12:00:00Z b"},
		time.FixedZone("", -2*3600):  {"2026-01-01T14:00:00Z d", "2026-07-01T06:30:00Z c", "2026-07-01T12:00:00Z b", "2026-07-01T14:00:00Z a"},
		mustLoad(t, "Europe/Berlin"): {"2026-01-01T11:00:00Z d", "2026-07-01T06:30:00Z c", "2026-07-01T10:00:00Z a", "2026-07-01T12:00:00Z b"},
	} {
		var got []string
		r := openText(t, text, events.Options{Zone: zone})
		var q traffic.Request
		for r.Next(&q) {
			got = append(got, q.At.Format(time.RFC3339)+" "+q.Client)
		}
		check.Equal(t, fmt.Sprint(zone), got, want)
	}
}

func mustLoad(t *testing.T, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	check.OK(t, err)
	return l
}

// The most frequent cause comes first, with its first line.
func TestCauses(t *testing.T) {
	t.Parallel()
	_, r := readAll(t, events.Options{Stdin: strings.NewReader("time,client\n\"x\nnoon,a\n1700000001,a\nnight,a\n")}, "-")
	check.Equal(t, "lines", summary(r.Lines()),
		"1 read, 1 skipped, 3 unread: -:3: time: is not a time with a date; -:2: line: has a quoted column that is not closed")
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unknown := filepath.Join(dir, "unknown")
	check.OK(t, os.WriteFile(unknown, []byte("PK\x03\x04 and so on"), 0o600))
	for name, tt := range map[string]struct {
		names []string
		o     events.Options
		says  string
	}{
		"nothing":          {nil, events.Options{}, "no log to read"},
		"no file":          {[]string{dir + "/none"}, events.Options{}, "no such file"},
		"a directory":      {[]string{dir}, events.Options{}, "is a directory"},
		"unknown content":  {[]string{unknown}, events.Options{}, "unknown is a zip archive, which is not read: unzip -p FILE | oauth-server simulate -"},
		"carriage returns": {[]string{"-"}, events.Options{Stdin: strings.NewReader("time,client\r1700000000,a\r")}, `end with a carriage return alone, which is not read: tr '\r' '\n' < FILE |`},
		"the second file":  {[]string{"testdata/okta.json", unknown}, events.Options{}, "zip archive"},
		"an unknown name":  {[]string{unknown}, events.Options{Format: "ldap"}, `unknown format "ldap": use auto, oauth-server`},
		"stdin twice":      {[]string{"-", "-"}, events.Options{Stdin: strings.NewReader("")}, "once only"},
		"no stdin":         {[]string{"-"}, events.Options{}, "no standard input"},
		"mapping of okta":  {[]string{unknown}, events.Options{Format: events.Okta, Mapping: mapping(t, "client=a")}, "takes no mapping"},
		"a missing part":   {[]string{"-"}, events.Options{Format: events.Common, Mapping: mapping(t, "client=form"), Stdin: strings.NewReader("x\n")}, `client: there is no part "form"`},
		"a broken path":    {[]string{"-"}, events.Options{Format: events.JSON, Mapping: mapping(t, "client=.a[,time=.b"), Stdin: strings.NewReader("{}")}, "a bracket is not closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := events.Open(tt.names, tt.o)
			check.ErrorSays(t, err, tt.says)
		})
	}
}

func TestParseMappingRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"client":             `"client" is not key=field`,
		"client=a,client=b":  "client is there twice",
		"customer=a":         `unknown key "customer": use client, time, user`,
		"==a":                `has no field`,
		"client=.a,,time=.b": `"" is not key=field`,
	} {
		_, err := events.ParseMapping(text)
		check.ErrorSays(t, err, says)
	}
}

// clientsOf reads a log and returns its clients.
func clientsOf(r *events.Reader) (out []string) {
	var q traffic.Request
	for r.Next(&q) {
		out = append(out, q.Client)
	}
	return out
}
