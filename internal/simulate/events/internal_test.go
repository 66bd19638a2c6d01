package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/simulate/traffic"
)

// fuzz reads arbitrary data as a log of the format. Each line must be counted once, and each
// request that was read must be yielded, in order, with a client and a time.
func fuzz(f *testing.F, format Format, mapping string, seeds ...string) {
	f.Helper()
	m, err := ParseMapping(mapping)
	check.OK(f, err)
	for _, seed := range seeds {
		text, err := os.ReadFile(filepath.Join("testdata", seed))
		check.OK(f, err)
		f.Add(text)
		for line := range bytes.Lines(text) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := Open([]string{"-"}, Options{Format: format, Mapping: m, Stdin: bytes.NewReader(log)})
		if err != nil {
			return // a table without the required columns
		}
		defer r.Close()
		in := r.waiting[0].opened.in
		document := in.doc != nil
		yielded, last := uint64(0), time.Time{}
		var q traffic.Request
		for r.Next(&q) {
			if yielded++; q.Client == "" || q.At.Before(last) || q.At.Year() < firstYear || q.At.Year() > lastYear {
				t.Fatalf("request %+v after one at %v", q, last)
			}
			last = q.At
		}
		l := r.Lines()
		if yielded != l.Read {
			t.Fatalf("%d requests are yielded and %d read", yielded, l.Read)
		}
		if lines := linesOf(log); !document && !isArchive(log) && l.Read+l.Unread+l.Skipped+in.joined != lines {
			t.Fatalf("%d lines are counted as %+v, with %d that belong to one above", lines, l, in.joined)
		}
	})
}

// linesOf counts lines. The last may lack a line break. A blank file has no lines.
func linesOf(log []byte) uint64 {
	log = bytes.TrimPrefix(log, []byte("\xef\xbb\xbf"))
	n := bytes.Count(log, []byte{'\n'})
	if len(log) > 0 && log[len(log)-1] != '\n' {
		n++
	}
	return uint64(n)
}

func isArchive(log []byte) bool {
	return bytes.HasPrefix(log, []byte{0x1f, 0x8b}) || isZstandard(log[:min(4, len(log))])
}

func FuzzOAuthServer(f *testing.F) {
	fuzz(f, OAuthServer, "", "oauth-server.log", "oauth-server.jsonl")
}

func FuzzKeycloak(f *testing.F) {
	fuzz(f, Keycloak, "", "keycloak.log", "keycloak.jsonl", "keycloak-events.json")
}
func FuzzOkta(f *testing.F)  { fuzz(f, Okta, "", "okta.json") } // has all forms of paths
func FuzzEntra(f *testing.F) { fuzz(f, Entra, "", "entra.jsonl", "entra-graph.json") }
func FuzzCombined(f *testing.F) {
	fuzz(f, Combined, "client=query.client_id,user=agent", "combined.log")
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("1700000000,a,\"b\n1700000000,ghost,\",9\r\n1700000001,c,\"\"\"\n\",9"))
	fuzz(f, CSV, "time=1,client=2,user=3,lifetime=4", "table.csv")
}

func FuzzJSON(f *testing.F) {
	fuzz(f, JSON, ".event==token*,time=.ts,client=.oauth.client,source=.net[kind=peer].ip,user=.net[0].ip,lifetime=.ttl", "mapped.jsonl")
}

// FuzzDetect: a recognised log can be opened, and arbitrary data can be examined.
func FuzzDetect(f *testing.F) {
	for _, name := range []string{"keycloak.log", "okta.json", "entra-graph.json", "table.csv", "combined.log", "mapped.jsonl"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		check.OK(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := Open([]string{"-"}, Options{Stdin: bytes.NewReader(log)})
		if err != nil {
			return
		}
		defer r.Close()
		if format := r.Lines().Files[0].Format; format == Auto || format == "" && linesOf(bytes.TrimSpace(log)) > 0 && !isArchive(log) {
			t.Fatalf("recognised as %q", format)
		}
	})
}

// FuzzScanner: output of encoding/json reads back unchanged, and all input that encoding/json
// accepts is accepted.
func FuzzScanner(f *testing.F) {
	f.Add("a", `{"a":1}`, []byte(`{"x":[{"a":"}"}],"\u0061":null}`))
	f.Add("tab\t\"", "\u2028 \\ \x00", []byte(`{"a":1e5,"b":{"c":[[]]}} `))
	f.Fuzz(func(t *testing.T, key, text string, line []byte) {
		key, text = strings.ToValidUTF8(key, "?"), strings.ToValidUTF8(text, "?")
		if key == "" || strings.Contains(key, `"`) {
			key += "k"
		}
		key = strings.ReplaceAll(key, `"`, "'")
		doc, err := json.Marshal(map[string]any{"before": text, "in": map[string]any{key: text, "list": []any{1, text, map[string]string{"k": "w", "v": text}}}})
		check.OK(t, err)
		root, s := &node{}, newScanner(5)
		for i, path := range []string{`.in."` + key + `"`, ".in.list[1]", ".in.list[k=w].v", ".before"} {
			check.OK(t, root.add(path, i+1, 0))
		}
		if bad := s.line(doc, root); bad != nil {
			t.Fatalf("%s: %v", doc, bad)
		}
		for slot := 1; slot < 5; slot++ {
			if got := string(s.values[slot].text()); got != text && !shadowed(key, slot) {
				t.Errorf("slot %d of %s is %q, want %q", slot, doc, got, text)
			}
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] == '{' && json.Valid(line) {
			if bad := s.line(line, root); bad != nil {
				t.Errorf("%s: %v", line, bad)
			}
		}
	})
}

// shadowed reports whether the key has the name of another member, so that the slots get other
// values.
func shadowed(key string, slot int) bool { return key == "list" && slot < 4 }

// FuzzTime: a time that package time reads as RFC 3339 is read as the same time.
func FuzzTime(f *testing.F) {
	for _, s := range []string{"2026-07-01T12:00:00.123456789+05:30", "2024-02-29 23:59:60Z", "1760129736.25", "10/Oct/2025:13:55:36 -0700", "2026-07-01 12:00:00,5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseTime([]byte(s), time.UTC)
		if ok && (got.Year() < firstYear || got.Year() > lastYear) {
			t.Errorf("%q is %v", s, got)
		}
		want, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || want.Year() <= firstYear || want.Year() >= lastYear || s != want.Format(time.RFC3339Nano) {
			return
		}
		if _, offset := want.Zone(); offset > 18*3600 || offset < -18*3600 {
			return
		}
		if !ok || !got.Equal(want) {
			t.Errorf("%q is %v (%v), want %v", s, got, ok, want)
		}
	})
}

// FuzzMapping: an accepted mapping has only known keys. It compiles or returns an error.
func FuzzMapping(f *testing.F) {
	f.Add("client=.a[x=y].b,time=.\"q.r\",.c==*d*")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMapping(text)
		if err != nil {
			return
		}
		for _, format := range []Format{JSON, CSV, Common} {
			if p, err := newParser(format, &m, []byte("client,time,user\n")); err == nil && (p.slot[keyClient] == 0 || p.slot[keyTime] == 0) {
				t.Errorf("%s: a parser without a client or a time", format)
			}
		}
	})
}

// A file is open only while its requests come, so that a year of rotated logs can be read at once.
func TestFewFilesAreOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var names []string
	for day := range 30 {
		name := filepath.Join(dir, fmt.Sprint(day))
		names = append([]string{name}, names...)
		var text []byte
		for i := range 3 {
			text = fmt.Appendf(text, "%d,c\n", 86400*day+i)
		}
		check.OK(t, os.WriteFile(name, append([]byte("time,client\n"), text...), 0o600))
	}
	r, err := Open(names, Options{})
	check.OK(t, err)
	defer r.Close()
	var q traffic.Request
	n := 0
	for r.Next(&q) {
		n++
		check.Equal(t, "open files", len(r.open), 1)
	}
	check.Equal(t, "requests", n, 90)
}

// TestEveryPresetIsDetected: a preset outside detectionOrder would be read with --format only.
func TestEveryPresetIsDetected(t *testing.T) {
	for f := range presets {
		if !slices.Contains(detectionOrder, f) {
			t.Errorf("%s is not in detectionOrder", f)
		}
	}
}
