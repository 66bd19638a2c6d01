//go:build unix

package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestRolloutDoc runs every command of docs/gateway/rollout.md, as [TestOperatingDoc] does those of its page.
func TestRolloutDoc(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sed", "grep"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the page needs %s: %v", tool, err)
		}
	}
	text, err := os.ReadFile("../../docs/gateway/rollout.md")
	check.OK(t, err)
	c := &pageCluster{t: t, dir: t.TempDir(), at: map[string]string{}}
	ports := []string{"9096", "9097", "8081"}
	var replaced []string
	for i, address := range reservedAddresses(t, len(ports)) {
		c.at[ports[i]] = address
		replaced = append(replaced, "127.0.0.1:"+ports[i], address)
	}
	c.issuer = "http://" + c.at["9097"] // a gateway has its own endpoints on the admin address
	<-awayFromTheFrameEnd(time.Hour)
	c.runPage(strings.NewReplacer(replaced...).Replace(string(text)), 0)
}
