package docs_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

var update = flag.Bool("update", false, "write docs/attacks.md")

// attackSections are the sections of docs/attacks.md in order, each with the key that rows name it by.
var attackSections = []struct{ key, heading string }{
	{"sign-ins", "Sign-ins: memory, processors and other users"},
	{"connections", "Connections and slow requests"},
	{"guessing", "Guessing passwords"},
	{"tokens", "Codes, refresh tokens and introspection"},
	{"sources", "Where requests come from"},
	{"consent", "Consent"},
	{"operators", "Operators and the admin API"},
	{"revocation", "Revocation"},
	{"usernames", "Usernames"},
	{"keys", "Signing keys"},
	{"input", "Hostile input"},
	{"deployment", "Deployment and supply chain"},
	{"rfc9700", "RFC 9700, section by section"},
}

const attacksIntro = `# Attacks and the tests that cover them

This appendix of the [security model](security.md) is generated from the doc comments of the tests it names, by package and function.
`

// attackRow is a paragraph of a doc comment: "Attack (KEY): the attack. The defence. Also pkg.TestA, pkg.TestB."
var attackRow = regexp.MustCompile(`^Attack \(([\w-]+)\): (.+?)\. (.+?\.)(?: Also ((?:[a-z]\w*\.(?:Test|Fuzz)\w+(?:, )?)+)\.)?$`)

// TestAttacks: docs/attacks.md has the rows of all tests; -update writes it.
func TestAttacks(t *testing.T) {
	rows, exists := map[string][]string{}, map[string]bool{}
	var named []string
	for dir := range packages(t) {
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		check.OK(t, err)
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
			check.OK(t, err)
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				name := filepath.Base(dir) + "." + fn.Name.Name
				exists[name] = true
				for paragraph := range strings.SplitSeq(fn.Doc.Text(), "\n\n") {
					text := strings.Join(strings.Fields(paragraph), " ")
					if !strings.HasPrefix(text, "Attack (") {
						continue
					}
					m := attackRow.FindStringSubmatch(text)
					if m == nil {
						t.Errorf("%s: want \"Attack (KEY): the attack. The defence. Also pkg.TestA, pkg.TestB.\", got %q", name, text)
						continue
					}
					tests := []string{name}
					if m[4] != "" {
						tests = append(tests, strings.Split(m[4], ", ")...)
					}
					named = append(named, tests...)
					rows[m[1]] = append(rows[m[1]], fmt.Sprintf("- **%s.** %s `%s`\n", m[2], m[3], strings.Join(tests, "`, `")))
				}
			}
		}
	}
	for _, name := range named {
		if !exists[name] {
			t.Errorf("an attack names %s, which does not exist", name)
		}
	}
	page := attacksIntro
	for _, s := range attackSections {
		list := rows[s.key]
		if len(list) == 0 {
			t.Errorf("no test has an attack of %q", s.key)
		}
		delete(rows, s.key)
		slices.SortFunc(list, compareNumbered)
		page += "\n## " + s.heading + "\n\n" + strings.Join(list, "")
	}
	for key := range rows {
		t.Errorf("there is no section %q", key)
	}
	if *update && !t.Failed() {
		check.OK(t, os.WriteFile(filepath.Join(root, "docs/attacks.md"), []byte(page), 0o600))
	}
	if read(t, "docs/attacks.md") != page {
		t.Error("docs/attacks.md differs from the tests: run go test ./docs -run TestAttacks -update")
	}
}

var digits = regexp.MustCompile(`\d+`)

// compareNumbered compares text with its numbers by value: 4.2 before 4.10.
func compareNumbered(a, b string) int {
	padded := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(n string) string {
			v, _ := strconv.Atoi(n) // of digits
			return fmt.Sprintf("%06d", v)
		})
	}
	return cmp.Compare(padded(a), padded(b))
}
