package deploycheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// TestModuleCanMove runs what CONTRIBUTING.md says about the module path in a clone, and finds every import
// of all modules under the new path.
func TestModuleCanMove(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## The module path\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no such section")
	}
	script := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(section)
	module := regexp.MustCompile(`(?m)^module=(\S+)$`).FindStringSubmatch(script[1])
	clone := filepath.Join(t.TempDir(), "src")
	inGit(t, root, "clone", "-q", "--no-hardlinks", ".", clone)
	run := func(command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
		cmd.Dir, cmd.Env = clone, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	run(script[1])
	for _, dir := range []string{".", "lab"} {
		check.Equal(t, "what is wrong in "+dir, run("go -C "+dir+" list -e -deps -test -f '{{with .Error}}{{.}}{{end}}' ./..."), "")
	}
	if listed := run("go list ./migrations"); strings.TrimSpace(listed) != module[1]+"/migrations" {
		t.Errorf("the public package is %s", listed)
	}
}
