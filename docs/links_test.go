package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"oauth-server/internal/check"
)

// TestLinks: every relative link of every page leads to a file and, where it names one, to a heading of it.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	headings := map[string]map[string]bool{}
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), m[1]))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
				continue
			}
			if m[2] == "" || !strings.HasSuffix(target, ".md") {
				continue
			}
			if headings[target] == nil {
				headings[target] = anchors(read(t, target))
			}
			if !headings[target][m[2]] {
				t.Errorf("%s links to %s#%s, and there is no such heading", page, target, m[2])
			}
		}
	}
}

// TestNamedPages: every page that the code, a message or a deployment names as docs/….md exists, with the heading.
func TestNamedPages(t *testing.T) {
	named := regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md(?:#([a-z0-9_-]+))?`)
	count := 0
	for file, text := range textFiles(t, ".", ".go", ".yml", ".yaml", ".json", ".env", ".service", ".js", ".conf") {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			page, _, _ := strings.Cut(m[0], "#")
			count++
			if _, err := os.Stat(filepath.Join(root, page)); err != nil || m[1] != "" && !anchors(read(t, page))[m[1]] {
				t.Errorf("%s names %s, which does not exist", file, m[0])
			}
		}
	}
	check.Equal(t, "pages are named", count > 30, true)
}

// pages are all Markdown pages that people read.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/adr/*.md", "docs/gateway/*.md", "lab/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(more) == 0 {
			t.Fatalf("no pages match %s: %v", pattern, err)
		}
		for _, p := range more {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(p), root+"/"))
		}
	}
	return all
}

// anchors are what links name the headings of a page by: in lower case, with hyphens for spaces and without
// punctuation, as GitHub makes them.
func anchors(page string) map[string]bool {
	found, code := map[string]bool{}, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		text, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if code || !is || !strings.HasPrefix(line, "#") {
			continue
		}
		found[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsSpace(r):
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(text))] = true
	}
	return found
}
