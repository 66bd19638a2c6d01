//go:build unix

package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestGatewayRolloutDoc runs every command of docs/rollout.md at a gateway, as [TestOperatingDoc] does at a server.
func TestGatewayRolloutDoc(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, tool := range []string{"bash", "curl", "sed", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the page needs %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile("../../docs/rollout.md")
	check.OK(t, err)
	c := &pageCluster{t: t, dir: t.TempDir(), at: map[string]string{}}
	ports := []string{"9096", "9097", "8081"}
	var replaced []string
	for i, address := range reservedAddresses(t, len(ports)) {
		c.at[ports[i]] = address
		replaced = append(replaced, "127.0.0.1:"+ports[i], address)
	}
	c.issuer = "http://" + c.at["9097"] // a gateway has its own endpoints on the admin address
	<-awayFromTheFrameEnd(time.Minute)
	c.runPage(strings.NewReplacer(replaced...).Replace(without(t, string(text), "At the server", 1)), 0)
}

// without returns the page without the sections that have this heading, or one that begins with it and a colon. There
// are n of them. The page has them for readers with another setup.
func without(t *testing.T, page, heading string, n int) string {
	t.Helper()
	section := regexp.MustCompile(`(?ms)^### ` + regexp.QuoteMeta(heading) + `(?::[^\n]*)?\n.*?(^##)`)
	for range n {
		at := section.FindStringSubmatchIndex(page)
		if at == nil {
			t.Fatalf("the page has fewer than %d sections %q", n, heading)
		}
		page = page[:at[0]] + page[at[2]:]
	}
	check.Equal(t, "there is another section "+heading, section.MatchString(page), false)
	return page
}
