package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
)

// TestDataPage: docs/data.md has a section for every table that a package declares, with all members of its value.
func TestDataPage(t *testing.T) {
	declared := regexp.MustCompile(`store\.Table\{\s*Name: "(\w+)"`)
	members := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	source := regexp.MustCompile("Value\\s+\\(`\\w+\\.(\\w+)`\\):")
	for file, text := range goFiles(t, "internal") {
		for _, table := range declared.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(file, "internal/store/") {
				continue
			}
			page := section(t, "docs/data.md", "### `"+table[1]+"`")
			from := source.FindStringSubmatch(page)
			if from == nil { // the value is of another package
				continue
			}
			var got []string
			for _, row := range members.FindAllStringSubmatch(page, -1) {
				for _, name := range strings.Split(row[1], ", ") {
					got = append(got, strings.Trim(name, "`"))
				}
			}
			want := membersOf(t, filepath.Dir(file), from[1])
			if diff := cmp.Diff(want, slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("members of %s (-in the code +in docs/data.md):\n%s", table[1], diff)
			}
		}
	}
}

// goFiles returns the text of Go files that are no tests, by path.
func goFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := textFiles(t, dir, ".go")
	maps.DeleteFunc(found, func(path, _ string) bool { return strings.HasSuffix(path, "_test.go") })
	return found
}

// textFiles returns the text of the files below a directory with one of the extensions, by path. It leaves out hidden
// directories.
func textFiles(t *testing.T, dir string, extensions ...string) map[string]string {
	t.Helper()
	found, top := map[string]string{}, filepath.Join(root, dir)
	check.OK(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != top && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return found
}

// membersOf returns the names of JSON that a declaration of a package has: those of a struct, or those that a
// function distinguishes.
func membersOf(t *testing.T, dir, declaration string) []string {
	t.Helper()
	names := map[string]bool{}
	note := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if f.Tag != nil {
					tag, _ := strconv.Unquote(f.Tag.Value)
					name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
					names[name] = true
				}
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				if text, ok := e.(*ast.BasicLit); ok && text.Kind == token.STRING {
					name, _ := strconv.Unquote(text.Value)
					names[name] = true
				}
			}
		}
		return true
	}
	for file, text := range goFiles(t, dir) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		check.OK(t, err)
		if o := parsed.Scope.Lookup(declaration); o != nil {
			ast.Inspect(o.Decl.(ast.Node), note)
		}
	}
	delete(names, "-")
	return slices.Sorted(maps.Keys(names))
}
