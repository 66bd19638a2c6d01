package migrations

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestEveryTable: each table of a domain package is in the layout, or its records would never expire, and is
// found by owner through an index if it says so.
func TestEveryTable(t *testing.T) {
	declared := regexp.MustCompile(`store\.Table\{Name: "(\w+)"([^}]*)\}`)
	owner := map[string]bool{}
	check.OK(t, fs.WalkDir(os.DirFS("../internal"), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "store/") {
			return err
		}
		text, err := os.ReadFile("../internal/" + path)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			owner[found[1]] = strings.Contains(found[2], "ByOwner: true") || found[1] == "grants" // where a file has no index
		}
		return err
	}))
	if len(owner) == 0 {
		t.Error("no table was found")
	}
	layout := map[string]bool{}
	for _, table := range tables {
		layout[table.name] = table.owner
	}
	check.Equal(t, "tables, and whether they are found by owner", layout, owner)
}
