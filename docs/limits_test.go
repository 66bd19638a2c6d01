package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// TestNginxTable: the server accepts what each row of the table has in the place of nginx's.
func TestNginxTable(t *testing.T) {
	var rows int
	for line := range strings.Lines(section(t, "docs/rate-limits.md", "### Let requests wait")) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !strings.Contains(cells[2], ": ") {
			continue
		}
		rows++
		t.Run(strings.TrimSpace(cells[1]), func(t *testing.T) {
			var limits, fields []string
			for _, code := range regexp.MustCompile("`([^`]*: [^`]*)`").FindAllStringSubmatch(cells[2], -1) {
				if strings.HasPrefix(code[1], "{") {
					limits = append(limits, code[1])
				} else {
					fields = append(fields, code[1])
				}
			}
			policy := strings.Join(fields, ", ")
			if len(limits) > 0 {
				list := "[" + strings.Join(limits, ", ") + "]"
				policy = "default: { " + strings.Join(append(fields, "user: "+list, "client: "+list), ", ") + " }"
			}
			_, err := config.Load(config.Sources{File: "nginx.yaml", Text: []byte("rate_limit: { " + policy + " }\n")})
			check.OK(t, err)
		})
	}
	check.Equal(t, "rows", rows, 4)
}
