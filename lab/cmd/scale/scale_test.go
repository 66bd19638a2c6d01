package main

import (
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt" //nolint:depguard // makes the file that is read

	"oauth-server/lab/page"
)

// The page has a section for each part, so that its tables can be written.
func TestPageHasAllSections(t *testing.T) {
	for _, name := range names() {
		if _, err := page.Read("../../"+pageFile, name); err != nil {
			t.Error(err)
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
