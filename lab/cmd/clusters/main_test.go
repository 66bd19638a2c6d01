package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

// TestPagesHaveTheSections: each page has the command lines of its sections, in order, and its chart.
func TestPagesHaveTheSections(t *testing.T) {
	for _, s := range sections {
		text, err := os.ReadFile(filepath.Join(root, s.file))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "<!-- begin "+s.name+" -->")
		made, rest, _ := strings.Cut(rest, "<!-- end "+s.name+" -->")
		var got []string
		for line := range strings.Lines(made) {
			if args, ok := strings.CutPrefix(line, "$ oauth-server simulate cluster "); ok {
				got = append(got, strings.TrimSpace(args))
			}
		}
		if diff := cmp.Diff(s.args, got); diff != "" {
			t.Errorf("%s, %s: %s", s.file, s.name, diff)
		}
		if s.chart != "" && !strings.Contains(rest, "("+strings.TrimPrefix(s.chart, "docs/")+")") {
			t.Errorf("%s does not show %s after %s", s.file, s.chart, s.name)
		}
	}
}

// TestSectionIsWritten: a section is its command lines and what they print; only the first draws the chart.
func TestSectionIsWritten(t *testing.T) {
	dir := t.TempDir()
	file, binary := filepath.Join(dir, "page.md"), filepath.Join(dir, "oauth-server")
	for name, text := range map[string]string{
		file:   "before\n<!-- begin a -->\nold\n<!-- end a -->\nafter\n",
		binary: "#!/bin/sh\necho \"args: $*\"\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := section{"page.md", "a", []string{"--rate 1x", "--rate 2x"}, "a.svg"}
	if err := s.write(t.Context(), dir, binary); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n<!-- begin a -->\n\n```\n$ oauth-server simulate cluster --rate 1x\nargs: simulate cluster --rate 1x --chart " +
		filepath.Join(dir, "a.svg") + "\n```\n\n```\n$ oauth-server simulate cluster --rate 2x\nargs: simulate cluster --rate 2x\n```\n\n" +
		"<!-- end a -->\nafter\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownSection: it is said before anything is built.
func TestUnknownSection(t *testing.T) {
	if err := run(t.Context(), t.TempDir(), "plain,none"); err == nil || !strings.Contains(err.Error(), "none: the sections are plain, faults") {
		t.Errorf("the error is %v", err)
	}
}
