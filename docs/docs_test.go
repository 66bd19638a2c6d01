// Package docs_test keeps what the pages say about the code true: the package
// lists, and the files and functions that they name. It checks the import rules too.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"oauth-server/internal/check"
)

const root = ".."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	check.OK(t, err)
	return string(text)
}

// section returns the text of a page from a heading to the next one of its level
// or above.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	level := strings.IndexByte(heading, ' ')
	next := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+level)) + `} `)
	if at := next.FindStringIndex(rest); at != nil {
		rest = rest[:at[0]]
	}
	return rest
}

// packages returns the directories with Go files below the root, in slash form.
func packages(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(name) == ".go" {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			found[filepath.ToSlash(dir)] = true
			return err
		}
		return nil
	})
	check.OK(t, err)
	return found
}

// TestPackagePicture: the picture shows every directory with Go files outside of lab, and no other.
func TestPackagePicture(t *testing.T) {
	shown := map[string]bool{}
	line := regexp.MustCompile(`(?m)^[ │├└─]*((?:cmd|internal|migrations|deploy|docs|tokenlimit)(?:/[a-z0-9/-]+)?) {2,}\S`)
	for _, m := range line.FindAllStringSubmatch(section(t, "docs/architecture.md", "## Packages"), -1) {
		if shown[m[1]] {
			t.Errorf("the picture shows %s twice", m[1])
		}
		shown[m[1]] = true
	}
	want := packages(t)
	maps.DeleteFunc(want, func(dir string, _ bool) bool { return strings.HasPrefix(dir, "lab/") })
	check.Equal(t, "packages", slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(want)))
}

// TestLabPackages: the tables of lab/README.md name every package of lab, and nothing that does not exist.
func TestLabPackages(t *testing.T) {
	named := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\|.*$`)
	name := regexp.MustCompile("`([a-z]+(?:/[a-z-]+)?)`")
	for _, cells := range row.FindAllString(read(t, "lab/README.md"), -1) {
		for _, m := range name.FindAllStringSubmatch(cells, -1) {
			dir := "lab/" + m[1]
			named[dir] = true
			if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
				t.Errorf("lab/README.md names %s: %v", m[1], err)
			}
		}
	}
	for dir := range packages(t) {
		if strings.HasPrefix(dir, "lab/") && !named[dir] {
			t.Errorf("lab/README.md does not name %s", dir)
		}
	}
}

// TestBudgets: packages and pages stay small enough to be read.
func TestBudgets(t *testing.T) {
	atMost := func(what string, n, most int) {
		t.Helper()
		if n > most {
			t.Errorf("%s: %d, want at most %d", what, n, most)
		}
	}
	files, lines := map[string]int{}, map[string]int{}
	for _, dir := range []string{"cmd", "internal", "migrations", "tokenlimit"} {
		for path, text := range goFiles(t, dir) {
			files[filepath.Dir(path)]++
			lines[filepath.Dir(path)] += strings.Count(text, "\n")
		}
	}
	for pkg, n := range files {
		atMost("files of "+pkg, n, 26)
		atMost("lines of "+pkg, lines[pkg], 3500)
	}
	words, records := 0, -1 // without the list of all
	for _, page := range pages(t) {
		n := len(strings.Fields(read(t, page)))
		switch {
		case strings.HasPrefix(page, "docs/adr/"):
			records++
			atMost("words of "+page, n, 400)
		case page == "README.md" || strings.HasPrefix(page, "docs/"):
			words += n
		}
	}
	atMost("words of the README and docs/", words, 40_000)
	atMost("architecture decision records", records, 18)
}

// TestImportRules: depguard is enabled, and each of its rules is about files and packages that exist. A rule for
// a package that has moved would forbid nothing.
func TestImportRules(t *testing.T) {
	var lint struct {
		Linters struct {
			Enable   []string
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Files, Allow []string
						Deny         []struct{ Pkg string }
					}
				}
			}
		}
	}
	check.OK(t, yaml.Unmarshal([]byte(read(t, ".golangci.yml")), &lint))
	check.Equal(t, "depguard is enabled", slices.Contains(lint.Linters.Enable, "depguard"), true)
	rules := lint.Linters.Settings.Depguard.Rules
	check.Equal(t, "there are rules", len(rules) > 20, true)
	module, _, _ := strings.Cut(strings.TrimPrefix(read(t, "go.mod"), "module "), "\n")
	for name, r := range rules {
		paths := r.Files
		for _, pkg := range r.Deny {
			paths = append(paths, pkg.Pkg)
		}
		for _, path := range append(paths, r.Allow...) {
			file := slices.Contains(r.Files, path)
			path = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(path, "!"), "**/"), "/**")
			path, own := strings.CutPrefix(strings.TrimRight(path, "$/"), module+"/")
			if !own && !file || path == "$test" || path == "*.go" {
				continue // a module of others, or files of every package
			}
			if found, err := filepath.Glob(filepath.Join(root, path)); len(found) == 0 || err != nil {
				t.Errorf("%s is about %s, which does not exist: %v", name, path, err)
			}
		}
	}
}

// TestNamedCode: every `path/file.go` that a page names exists, and each `Type.Method()` or
// `function()` after it, up to the next file, is declared in that file.
func TestNamedCode(t *testing.T) {
	named := regexp.MustCompile("`([a-z][a-z0-9_/-]*/[a-z0-9_-]+\\.(?:go|json|yaml))`|`([A-Za-z_]+(?:\\.[A-Za-z_]+)?)\\(\\)`")
	for _, page := range []string{"CONTRIBUTING.md", "docs/architecture.md"} {
		file, names := "", map[string]bool(nil)
		for _, m := range named.FindAllStringSubmatch(read(t, page), -1) {
			switch {
			case m[1] != "":
				file, names = m[1], declared(t, page, m[1])
			case file == "":
				t.Errorf("%s names %s before any file", page, m[2])
			case !names[m[2]]:
				t.Errorf("%s: %s does not declare %s", page, file, m[2])
			}
		}
	}
}

// TestQuotedMessages: a quotation of three or more words without capitals is a message of the program, a command, or
// something else that the code contains. Readers search logs for it.
func TestQuotedMessages(t *testing.T) {
	var code strings.Builder
	for _, text := range goFiles(t, "internal") {
		code.WriteString(strings.ToLower(text))
	}
	quotation := regexp.MustCompile("`([a-z]+)((?:\\s[a-z;,]+){2,})`")
	commands := []string{"docker", "go", "limits"}
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, "docs/") || strings.HasPrefix(page, "docs/adr/") {
			continue
		}
		for _, m := range quotation.FindAllStringSubmatch(read(t, page), -1) {
			message := strings.ReplaceAll(m[1]+m[2], "\n", " ")
			if !slices.Contains(commands, m[1]) && !strings.Contains(code.String(), message) {
				t.Errorf("%s quotes %q, which the program does not print", page, message)
			}
		}
	}
}

// TestWalks: CONTRIBUTING.md has the four walks, and each names files.
func TestWalks(t *testing.T) {
	walks := section(t, "CONTRIBUTING.md", "## Four walks through the code")
	for _, about := range []string{"Retry-After is computed", "refresh token is claimed", "lost reply is handled", "touch for a new algorithm"} {
		_, walk, found := strings.Cut(walks, about)
		walk, _, _ = strings.Cut(walk, "\n**")
		if n := strings.Count(walk, ".go`"); !found || n < 4 {
			t.Errorf("the walk %q names %d files, want 4 at least", about, n)
		}
	}
}

// declared returns the functions of a file, and its methods as Type.Method.
func declared(t *testing.T, page, path string) map[string]bool {
	t.Helper()
	if filepath.Ext(path) != ".go" {
		read(t, path)
		return nil
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Errorf("%s: %v", page, err)
		return nil
	}
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names[receiver(n)+n.Name.Name] = true
			return false
		case *ast.TypeSpec:
			if i, ok := n.Type.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					for _, method := range m.Names {
						names[n.Name.Name+"."+method.Name] = true
					}
				}
			}
		}
		return true
	})
	return names
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}
