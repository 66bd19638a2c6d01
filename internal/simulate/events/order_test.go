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
