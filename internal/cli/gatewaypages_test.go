package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestGatewayPages: the command line of each page about a server is accepted.
func TestGatewayPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/gateway/*.md")
	check.OK(t, err)
	pages = append(pages, "../../docs/gateway.md")
	line := regexp.MustCompile(`(?m)^oauth-server (gateway --upstream .*)$`)
	tried := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		check.OK(t, err)
		for _, m := range line.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", ""), -1) {
			args := strings.Fields(strings.ReplaceAll(m[1], "'", "")) // a quoted path has no spaces
			runOK(t, "", append(args, "--check-config")...)
			tried++
		}
	}
	check.Equal(t, "command lines on the pages", tried >= 6, true)
}
