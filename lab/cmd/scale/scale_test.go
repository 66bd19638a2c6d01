package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt" //nolint:depguard // makes the file that is read

	"oauth-server/lab/page"
)

func TestChosenParts(t *testing.T) {
	for list, want := range map[string]string{
		"": "refresh,families,clients,policies,rest", "rest, refresh": "refresh,rest", "clients": "clients",
	} {
		found, err := chosen(list)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range found {
			got = append(got, p.name)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("chosen(%q) = %v, want %s", list, got, want)
		}
	}
	if _, err := chosen("clients,nothing"); err == nil {
		t.Error("a part that there is not was accepted")
	}
}

// The page has a section for each part, so that its tables can be written.
func TestPageHasAllSections(t *testing.T) {
	text, err := os.ReadFile("../../" + pageFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		if _, err := page.With(string(text), name, "text"); err != nil {
			t.Error(err)
		}
	}
}

func TestTable(t *testing.T) {
	f := figures{"x/1/start": 1.26, "x/1/peak": 1234 << 20}
	got := f.table("clients", []column{{"start", "start", seconds}, {"peak", "peak", mebi}}, rowsOf([]int{1, 2}, "x/%d/"))
	const want = `| clients | start | peak |
|---|---|---|
| 1 | 1.26 s | 1,234 MiB |
| 2 | – | – |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSeconds(t *testing.T) {
	for v, want := range map[float64]string{0.0005: "0.5 ms", 0.0123: "12.3 ms", 0.25: "0.25 s", 1.94: "1.94 s", 36: "36 s"} {
		if got := seconds(v); got != want {
			t.Errorf("seconds(%v) = %q, want %q", v, got, want)
		}
	}
}

// The number of the last transaction is read from a file that is open.
func TestCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	before, err := commits(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucketIfNotExists([]byte("b")); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := commits(path); err != nil || after != before+3 {
		t.Errorf("after 3 commits the number went from %d to %d, %v", before, after, err)
	}
	zeros := filepath.Join(t.TempDir(), "zeros")
	if err := os.WriteFile(zeros, make([]byte, 4*os.Getpagesize()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := commits(zeros); err == nil {
		t.Error("a page of zeros has a transaction")
	}
}

// A row of the table is a command that any instance sends at least once in ten minutes.
func TestCommandsAtRest(t *testing.T) {
	f := figures{
		"rest/mongodb/1000x1/find audit": 60, "rest/mongodb/1000x1/find rare": 0.05, "rest/mongodb/1000x1/answers": 5,
		"rest/mongodb/1000x1/commands": 60, "rest/embedded/1000x1/commits": 1,
	}
	if diff := cmp.Diff([]string{"find audit"}, f.commands()); diff != "" {
		t.Error(diff)
	}
}
